// build@static: -static
// Prints hello and exits with the given code.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    puts("hello");
    return argc > 1 ? atoi(argv[1]) : 0;
}
