/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's table of promotions (promote.txt beside a family's cases): the type of a sum of two arrays, or of an array and
 * a Python number. Called by the oracle runner. */
#include "oracle.h"
#include <string.h>

/* An empty array: only its type counts. */
static oly_array of_type(int dtype)
{
    return oly_zeros((oly_dtype)dtype, 0);
}

static oly_operand python_number(const char *type)
{
    return strcmp(type, "bool") == 0    ? oly_operand_bool(true)
           : strcmp(type, "int") == 0   ? oly_operand_int(1)
           : strcmp(type, "float") == 0 ? oly_operand_float(1.5)
                                        : oly_operand_parts(1, 1);
}

static void check_line(oracle_run *run, const char *line, bool weak, const char *a, const char *b, const char *result)
{
    int first = check_oracle_dtype(a), second = weak ? OLY_BOOL : check_oracle_dtype(b);
    int wanted = check_oracle_dtype(result);
    if (first < 0 || second < 0 || wanted < 0) {
        oracle_fail(run, "\"%s\": unknown types", line);
        return;
    }
    oly_operand y = weak ? python_number(b) : oly_operand_array(of_type(second));
    oly_array sum = oly_add(of_type(first), y);
    if (!sum)
        oracle_fail_call(run, line);
    else if ((int)oly_dtype_of(sum) != wanted)
        oracle_fail(run, "\"%s\": got %s", line, oly_dtype_name(oly_dtype_of(sum)));
}

bool oracle_check_promotions(oracle_run *run, const char *folder)
{
    char path[1300], line[200], kind[16], a[16], b[16], result[16];
    snprintf(path, sizeof path, "%s/promote.txt", folder);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#' || line[0] == 0)
            continue;
        bool read = sscanf(line, "%15s %15s %15s %15s", kind, a, b, result) == 4,
             weak = read && strcmp(kind, "weak") == 0;
        if (!read || (!weak && strcmp(kind, "promote") != 0))
            oracle_fail(run, "\"%s\" is no promotion", line);
        else
            check_line(run, line, weak, a, b, result);
    }
    fclose(file);
    return true;
}
