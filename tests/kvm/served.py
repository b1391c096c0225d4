"""What `lissom kvm observe --metrics=ADDRESS:PORT` answers at its URL once an interval has been
counted, and elsewhere: `served.py URL`.
"""

import sys
import time
import urllib.error
import urllib.request


def main():
    url = sys.argv[1]
    # Until the first interval is over, the page consists only of its end mark.
    while "lissom_kvm_lost_events_total " not in (page := get(url)[1]):
        time.sleep(0.01)
    print(get(url)[0])
    print(page.splitlines()[-1] if page.endswith("\n") else "no end of line")
    try:
        get(url + "x")
    except urllib.error.HTTPError as error:
        print(error.code)


def get(url):
    """The type of what is there, and its text."""
    with urllib.request.urlopen(url) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


main()
