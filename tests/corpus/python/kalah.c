/* The native library of library_bot.py. */
int choose_hole(const int *own, int pits) {
    int best = -1;
    for (int i = 0; i < pits; i++)
        if (own[i] > 0 && (best < 0 || own[i] >= own[best])) best = i;
    return best + 1;
}
