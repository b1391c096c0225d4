// build@static: -static
// Says hello and exits with the code it was given.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    puts("hello");
    return argc > 1 ? atoi(argv[1]) : 0;
}
