#include "search_block.cuh"

SEARCH(384, 4, 2)
