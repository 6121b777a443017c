#include "search_block.cuh"

SEARCH(128, 4, 2)
