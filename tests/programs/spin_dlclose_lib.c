// build: -shared -fPIC
// The library of spin_dlclose: two wait loops.
#include <stdint.h>
void lib_wait(volatile uint32_t *w, uint32_t value) {
    while (*w != value) __builtin_ia32_pause();
}
void lib_wait2(volatile uint32_t *w, uint32_t value) {
    while (*w != value) {}
}
int lib_number(void) { return 41; }
