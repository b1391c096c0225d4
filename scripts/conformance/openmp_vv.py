NAME = "openmp_vv"
HOW = ""


def find(s):
    return None
