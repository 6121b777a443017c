#include "search_block.cuh"

SEARCH(768, 8, 1)
