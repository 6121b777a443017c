#include "search_block.cuh"

SEARCH(320, 4, 2)
