#include "search_block.cuh"

SEARCH(1024, 8, 1)
