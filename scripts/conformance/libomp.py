NAME = "libomp"
HOW = ""


def find(s):
    return None
