/* Sharding types of values that are given or moved: places. */
#include "graph/sharding_rule.h"

/* What the program asks for, on whatever mesh. */
oly_status oly_sharding_rule_place(oly_node *node)
{
    oly_type_set_sharding(&node->type, node->params.sharding);
    return OLY_OK;
}
