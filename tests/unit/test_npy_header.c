/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  Headers of .npy files: everything that NumPy writes of numbers is read, everything else refused with the reason, and what
 * is written is what NumPy writes. */
#include "check.h"
#include "file/npy_header.h"

/* A file's first bytes: version and dictionary. */
static size_t file_of(int version, const char *dictionary, char *bytes)
{
    size_t prefix = version == 1 ? 10 : 12, n = strlen(dictionary);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (char)version;
    memset(bytes + 7, 0, 5);
    bytes[8] = (char)n;
    bytes[9] = (char)(n >> 8);
    memcpy(bytes + prefix, dictionary, n);
    return prefix + n;
}

static oly_status read_text(int version, const char *dictionary, oly_npy_header *h)
{
    char bytes[1024];
    size_t n = file_of(version, dictionary, bytes);
    return oly_npy_header_read(bytes, n, "x.npy", h);
}

static void refused(const char *dictionary, oly_status status, const char *part)
{
    oly_npy_header h;
    assert_int_equal(read_text(1, dictionary, &h), status);
    if (!strstr(oly_pending_message(), part) || !strstr(oly_pending_message(), "x.npy"))
        fail_msg("\"%s\" is not in the message \"%s\"", part, oly_pending_message());
    oly_drop_message();
}

#define WITH_TYPE(descr)  "{'descr': " descr ", 'fortran_order': False, 'shape': (3,), }  \n"
#define WITH_SHAPE(shape) "{'descr': '<f8', 'fortran_order': False, 'shape': " shape ", }  \n"

static void element_types_are_those_of_numpy(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        oly_dtype dtype;
        bool swapped;
    } rows[] = {
        {WITH_TYPE("'|b1'"), OLY_BOOL, false},
        {WITH_TYPE("'|i1'"), OLY_INT8, false},
        {WITH_TYPE("'<i2'"), OLY_INT16, false},
        {WITH_TYPE("'>i2'"), OLY_INT16, true},
        {WITH_TYPE("'<i4'"), OLY_INT32, false},
        {WITH_TYPE("'>i8'"), OLY_INT64, true},
        {WITH_TYPE("'|u1'"), OLY_UINT8, false},
        {WITH_TYPE("'>u2'"), OLY_UINT16, true},
        {WITH_TYPE("'<u4'"), OLY_UINT32, false},
        {WITH_TYPE("'<u8'"), OLY_UINT64, false},
        {WITH_TYPE("'<f2'"), OLY_FLOAT16, false},
        {WITH_TYPE("'=f4'"), OLY_FLOAT32, false},
        {WITH_TYPE("'>f8'"), OLY_FLOAT64, true},
        {WITH_TYPE("'f8'"), OLY_FLOAT64, false},
        {WITH_TYPE("'<c8'"), OLY_COMPLEX64, false},
        {WITH_TYPE("'>c16'"), OLY_COMPLEX128, true},
        {WITH_TYPE("'<V2'"), OLY_BFLOAT16, false},
        {WITH_TYPE("'|V2'"), OLY_BFLOAT16, false},
        {WITH_TYPE("'<f1'"), OLY_FLOAT8_E5M2, false},
        {WITH_TYPE("'?'"), OLY_BOOL, false},
        {WITH_TYPE("'|V1'") "# float8_e4m3fn", OLY_FLOAT8_E4M3FN, false},
        {WITH_TYPE("'|V1'") "#float8_e5m2 \n", OLY_FLOAT8_E5M2, false},
        {WITH_TYPE("'>i1'"), OLY_INT8, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int version = 1; version <= 3; version++) {
            oly_npy_header h;
            assert_int_equal(read_text(version, rows[k].text, &h), OLY_OK);
            assert_int_equal(h.dtype, rows[k].dtype);
            assert_int_equal(h.swapped, rows[k].swapped);
            assert_int_equal(oly_npy_count(&h), 3);
            assert_int_equal(oly_npy_bytes(&h), 3 * oly_dtype_size(h.dtype));
        }
}

static void other_elements_are_refused(void **state)
{
    (void)state;
    refused(WITH_TYPE("'|O'"), OLY_DTYPE, "pickled");
    refused(WITH_TYPE("'|S5'"), OLY_DTYPE, "texts");
    refused(WITH_TYPE("'<U7'"), OLY_DTYPE, "texts");
    refused(WITH_TYPE("'<M8[ns]'"), OLY_DTYPE, "dates");
    refused(WITH_TYPE("'<f16'"), OLY_DTYPE, "astype('float64')");
    refused(WITH_TYPE("'<c32'"), OLY_DTYPE, "'<c32'");
    refused(WITH_TYPE("[('a', '<f4'), ('b', '<i4')]"), OLY_DTYPE, "structures");
    refused(WITH_TYPE("('<f4', (2,))"), OLY_DTYPE, "structures");
    refused(WITH_TYPE("'|V1'"), OLY_DTYPE, "oly_load_raw");
    refused(WITH_TYPE("'|V1'") "# float4", OLY_DTYPE, "\"float4\"");
    refused(WITH_TYPE("'|V7'"), OLY_DTYPE, "'|V7'");
    refused(WITH_TYPE("'<i3'"), OLY_DTYPE, "'<i3'");
    refused(WITH_TYPE("'<i04'"), OLY_DTYPE, "'<i04'");
    refused(WITH_TYPE("'<i999999999999999'"), OLY_DTYPE, "of a type that Olympus does not have");
    refused(WITH_TYPE("'<i99999999999999999999999999'"), OLY_IO, "longer than any");
    refused(WITH_TYPE("'|f4'"), OLY_DTYPE, "no byte order");
    refused(WITH_TYPE("''"), OLY_IO, "empty");
    refused(WITH_TYPE("'<'"), OLY_DTYPE, "'<'");
    refused(WITH_TYPE("'float64'"), OLY_DTYPE, "as '<f8'");
    refused(WITH_TYPE("'complex64'"), OLY_DTYPE, "'complex64'; read is what NumPy writes");
    refused(WITH_TYPE("'int32'"), OLY_DTYPE, "as '<f8'");
    refused(WITH_TYPE("'d'"), OLY_DTYPE, "as '<f8'");
    refused(WITH_TYPE("'<f'"), OLY_DTYPE, "as '<f8'");
}

static void shapes_of_any_form(void **state)
{
    (void)state;
    oly_npy_header h;
    assert_int_equal(read_text(1, WITH_SHAPE("()"), &h), OLY_OK);
    assert_int_equal(h.rank, 0);
    assert_int_equal(oly_npy_count(&h), 1);
    assert_int_equal(read_text(1, WITH_SHAPE("( 0 ,7)"), &h), OLY_OK);
    assert_int_equal(oly_npy_count(&h), 0);
    assert_int_equal(read_text(1, WITH_SHAPE("(3L, 4L)"), &h), OLY_OK);
    assert_int_equal(h.shape[1], 4);
    assert_int_equal(read_text(1, WITH_SHAPE("(1,2,3,4,5,6,7,8,9,10,11,12,)"), &h), OLY_OK);
    assert_int_equal(h.rank, 12);
    assert_int_equal(read_text(1, WITH_SHAPE("(1099511627776, 65536)"), &h), OLY_OK);
    assert_int_equal(oly_npy_bytes(&h), (int64_t)8 << 56);
    assert_int_equal(read_text(2, "\t{ \"shape\" :(2,3) ,'fortran_order':True,'descr':'<i4'}\n", &h), OLY_OK);
    assert_true(h.fortran);
    refused(WITH_SHAPE("(3)"), OLY_IO, "(3,)");
    refused(WITH_SHAPE("(-1,)"), OLY_IO, "negative");
    refused(WITH_SHAPE("(1 2)"), OLY_IO, "comma");
    refused(WITH_SHAPE("(,)"), OLY_IO, "digits");
    refused(WITH_SHAPE("(2.0,)"), OLY_IO, "comma");
    refused(WITH_SHAPE("[2]"), OLY_IO, "tuple");
    refused(WITH_SHAPE("(9223372036854775808,)"), OLY_OVERFLOW, "2^63");
    refused(WITH_SHAPE("(4294967296, 4294967296)"), OLY_OVERFLOW, "2^63");
    refused(WITH_SHAPE("(4294967296, 4294967296, 0)"), OLY_OVERFLOW, "2^63");
    refused(WITH_SHAPE("(1152921504606846975,)"), OLY_OVERFLOW, "2^63");
    refused(WITH_SHAPE("(1,1,1,1,1,1,1,1,1,1,1,1,1)"), OLY_SHAPE, "more than 12 dimensions");
}

static void malformed_dictionaries_are_refused(void **state)
{
    (void)state;
    refused("   ", OLY_IO, "dictionary");
    refused("{}", OLY_IO, "must all be there");
    refused("{'descr': '<f4', 'shape': (3,)}", OLY_IO, "must all be there");
    refused("{'descr': '<f4', 'descr': '<f4'}", OLY_IO, "twice");
    refused("{'shape': (), 'shape': ()}", OLY_IO, "twice");
    refused("{'fortran_order': True, 'fortran_order': True}", OLY_IO, "twice");
    refused("{'fortran_order': 1}", OLY_IO, "True or False");
    refused("{'fortran_order': Falsehood}", OLY_IO, "True or False");
    refused("{'order': 1}", OLY_IO, "no others");
    refused("{'descr' '<f4'}", OLY_IO, "colon");
    refused("{'descr': '<f4' 'shape': ()}", OLY_IO, "comma or }");
    refused("{'descr': '<f\\x34'}", OLY_IO, "escape");
    refused("{'descr': '<f4", OLY_IO, "does not end");
    refused("{descr: '<f4'}", OLY_IO, "quotes");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} import os", OLY_IO, "after the dictionary");
    refused("{'a_very_long_key_name': 1}", OLY_IO, "longer than any");
}

static void expect(oly_status got, oly_status wanted, const char *part)
{
    assert_int_equal(got, wanted);
    if (!strstr(oly_pending_message(), part))
        fail_msg("\"%s\" is not in the message \"%s\"", part, oly_pending_message());
    oly_drop_message();
}

static void truncated_headers_and_other_files_are_refused(void **state)
{
    (void)state;
    char bytes[1024];
    oly_npy_header h;
    size_t length, n = file_of(1, WITH_TYPE("'<f4'"), bytes);
    expect(oly_npy_header_read(bytes, 0, "x", &h), OLY_IO, "it is empty");
    for (size_t k = 1; k < n; k++)
        expect(oly_npy_header_read(bytes, k, "x", &h), OLY_IO, "ends within the header");
    expect(oly_npy_header_read("PK\3\4aaaaaaaaaaa", 15, "x", &h), OLY_IO, "oly_load_npz");
    expect(oly_npy_header_read("\x80\x04.............", 15, "x", &h), OLY_IO, "pickle");
    expect(oly_npy_header_read("\x89PNG............", 15, "x", &h), OLY_IO, "not a .npy file");
    bytes[6] = 4;
    expect(oly_npy_header_read(bytes, n, "x", &h), OLY_IO, "version 4.0");
    bytes[6] = 1;
    bytes[7] = 1;
    expect(oly_npy_header_read(bytes, n, "x", &h), OLY_IO, "version 1.1");
    bytes[6] = 2;
    bytes[7] = 0;
    memset(bytes + 8, 0xff, 4);
    expect(oly_npy_header_length(bytes, OLY_NPY_PREFIX, "x", &length), OLY_IO, "claims 4294967295 bytes");
}

static void what_is_written_is_what_numpy_writes(void **state)
{
    (void)state;
    char bytes[OLY_NPY_WRITTEN_MOST];
    oly_npy_header h = {.dtype = OLY_FLOAT32, .rank = 2, .shape = {3, 4}};
    static const char numpys[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }                          "
                                 "                                \n";
    assert_int_equal(oly_npy_header_write(&h, 1, bytes), 128);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00v\x00", 10);
    assert_memory_equal(bytes + 10, numpys, 118);
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
        for (int rank = 0; rank <= OLY_MAX_RANK; rank++)
            for (int version = 1; version <= 2; version++) {
                h = (oly_npy_header){.dtype = (oly_dtype)dtype, .rank = rank};
                for (int d = 0; d < rank; d++)
                    h.shape[d] = d % 2 ? 1 : INT64_C(1) << 4 * d % 17;
                oly_npy_header again, wanted = h;
                size_t n = oly_npy_header_write(&h, version, bytes);
                assert_int_equal(n % 64, 0);
                assert_int_equal(oly_npy_header_read(bytes, n, "x", &again), OLY_OK);
                assert_int_equal(again.dtype, dtype);
                assert_int_equal(again.rank, rank);
                assert_memory_equal(again.shape, wanted.shape, sizeof wanted.shape);
                assert_int_equal(again.data, n);
                assert_int_equal(h.data, n);
            }
    h = (oly_npy_header){.dtype = OLY_FLOAT8_E4M3FN, .rank = OLY_MAX_RANK}; /* the longest */
    for (int d = 0; d < OLY_MAX_RANK; d++)
        h.shape[d] = INT64_MAX;
    assert_in_range(oly_npy_header_write(&h, 2, bytes), 1, OLY_NPY_WRITTEN_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_types_are_those_of_numpy),
        cmocka_unit_test(other_elements_are_refused),
        cmocka_unit_test(shapes_of_any_form),
        cmocka_unit_test(malformed_dictionaries_are_refused),
        cmocka_unit_test(truncated_headers_and_other_files_are_refused),
        cmocka_unit_test(what_is_written_is_what_numpy_writes),
    };
    return CHECK_MAIN(tests);
}
