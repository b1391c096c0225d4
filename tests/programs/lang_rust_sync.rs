// Rust's std has futex locks of its own, not based on pthread. Tests Mutex, Condvar, RwLock, Once,
// park, channels, Barrier, thread::scope, thread-locals, panics that unwind, and sleeping, with
// THREADS threads.
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock};
use std::thread;
use std::time::{Duration, Instant};

fn threads() -> usize {
    std::env::var("THREADS").ok().and_then(|s| s.parse().ok()).filter(|&n| n >= 2).unwrap_or(4)
}
fn share(total: usize, n: usize) -> usize {
    (total / n).max(1)
}

fn mutex(n: usize) {
    let rounds = share(20000, n);
    let m = Mutex::new(0usize);
    thread::scope(|s| {
        for _ in 0..n {
            s.spawn(|| {
                for i in 0..rounds {
                    let mut g = m.lock().unwrap();
                    let seen = *g;
                    if i % 64 == 0 {
                        thread::yield_now();
                    }
                    *g = seen + 1;
                }
            });
        }
    });
    assert_eq!(m.into_inner().unwrap(), n * rounds);
}

fn condvar(n: usize) {
    let n = n.min(16);
    let rounds = share(1600, n);
    let (m, c) = (Mutex::new(0usize), Condvar::new());
    thread::scope(|s| {
        for me in 0..n {
            let (m, c) = (&m, &c);
            s.spawn(move || {
                for _ in 0..rounds {
                    let mut g = c.wait_while(m.lock().unwrap(), |t| *t % n != me).unwrap();
                    *g += 1;
                    c.notify_all();
                }
            });
        }
    });
    assert_eq!(*m.lock().unwrap(), n * rounds);
    let start = Instant::now();
    let (_g, r) = c.wait_timeout_while(m.lock().unwrap(), Duration::from_millis(5), |_| true).unwrap();
    assert!(r.timed_out() && start.elapsed() >= Duration::from_millis(5), "early: {:?}", start.elapsed());
}

fn rwlock(n: usize) {
    let rounds = share(10000, n);
    let l = RwLock::new((0u64, 0u64));
    let writes = AtomicUsize::new(0);
    thread::scope(|s| {
        for me in 0..n {
            let (l, writes) = (&l, &writes);
            s.spawn(move || {
                for i in 0..rounds {
                    if (i + me) % 4 == 0 {
                        let mut g = l.write().unwrap();
                        g.0 += 1;
                        if i % 16 == 0 {
                            thread::yield_now();
                        }
                        g.1 += 1;
                        writes.fetch_add(1, SeqCst);
                    } else {
                        let g = l.read().unwrap();
                        assert_eq!(g.0, g.1, "half an update");
                    }
                }
            });
        }
    });
    assert_eq!(l.read().unwrap().0, writes.load(SeqCst) as u64);
}

fn barrier(n: usize) {
    let rounds = share(3000, n);
    let (b, leaders, arrived) = (Barrier::new(n), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|s| {
        for _ in 0..n {
            s.spawn(|| {
                for i in 1..=rounds {
                    arrived.fetch_add(1, SeqCst);
                    if b.wait().is_leader() {
                        leaders.fetch_add(1, SeqCst);
                    }
                    assert!(arrived.load(SeqCst) >= i * n, "passed early");
                }
            });
        }
    });
    assert_eq!(leaders.load(SeqCst), rounds);
}

fn channels(n: usize) {
    let per = share(10000, n);
    for bound in [None, Some(0), Some(4)] {
        let per = if bound == Some(0) { share(2000, n) } else { per };
        let (tx, rx): (Box<dyn Fn(usize, usize) + Send + Sync>, mpsc::Receiver<(usize, usize)>) = match bound {
            None => {
                let (tx, rx) = mpsc::channel();
                (Box::new(move |a, b| tx.send((a, b)).unwrap()), rx)
            }
            Some(k) => {
                let (tx, rx) = mpsc::sync_channel(k);
                (Box::new(move |a, b| tx.send((a, b)).unwrap()), rx)
            }
        };
        let tx = Arc::new(tx);
        let mut last = vec![0usize; n];
        thread::scope(|s| {
            for me in 0..n {
                let tx = tx.clone();
                s.spawn(move || (1..=per).for_each(|i| tx(me, i)));
            }
            drop(tx);
            for (who, i) in rx.iter() {
                assert_eq!(i, last[who] + 1, "order of sender {who}");
                last[who] = i;
            }
        });
        assert!(last.iter().all(|&l| l == per));
    }
    let (tx, rx) = mpsc::channel::<()>();
    let start = Instant::now();
    assert_eq!(rx.recv_timeout(Duration::from_millis(5)), Err(mpsc::RecvTimeoutError::Timeout));
    assert!(start.elapsed() >= Duration::from_millis(5), "early");
    drop(tx);
    assert!(rx.recv().is_err());
}

fn park(n: usize) {
    // A token travels around: each thread unparks the next.
    let rounds = share(2000, n);
    let handles: Arc<OnceLock<Vec<thread::Thread>>> = Arc::new(OnceLock::new());
    let token = Arc::new(AtomicUsize::new(usize::MAX));
    let joins: Vec<_> = (0..n)
        .map(|me| {
            let (handles, token) = (handles.clone(), token.clone());
            thread::spawn(move || {
                for r in 0..rounds {
                    while token.load(SeqCst) != r * n + me {
                        thread::park();
                    }
                    token.store(r * n + me + 1, SeqCst);
                    handles.get().unwrap()[(me + 1) % n].unpark();
                }
            })
        })
        .collect();
    handles.set(joins.iter().map(|j| j.thread().clone()).collect()).unwrap();
    token.store(0, SeqCst);
    handles.get().unwrap()[0].unpark();
    joins.into_iter().for_each(|j| j.join().unwrap());
    assert_eq!(token.load(SeqCst), n * rounds);
    let start = Instant::now();
    thread::park_timeout(Duration::from_millis(2)); // may return early, but must return
    thread::sleep(Duration::from_millis(3));
    assert!(start.elapsed() >= Duration::from_millis(3), "sleep ended early");
}

thread_local!(static LOCAL: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) });

fn once_and_panics(n: usize) {
    static ONCE: Once = Once::new();
    static RAN: AtomicUsize = AtomicUsize::new(0);
    std::panic::set_hook(Box::new(|_| {}));
    let poisoned = Arc::new(Mutex::new(0));
    let joins: Vec<_> = (0..n)
        .map(|me| {
            let poisoned = poisoned.clone();
            thread::spawn(move || {
                ONCE.call_once(|| {
                    thread::sleep(Duration::from_millis(2));
                    RAN.fetch_add(1, SeqCst);
                });
                assert_eq!(RAN.load(SeqCst), 1);
                for i in 0..50 {
                    LOCAL.with(|l| l.borrow_mut().push(me * 100 + i));
                    thread::yield_now();
                }
                LOCAL.with(|l| assert!(l.borrow().iter().enumerate().all(|(i, &v)| v == me * 100 + i)));
                let _g = if me % 2 == 0 { Some(poisoned.lock().unwrap_or_else(|e| e.into_inner())) } else { None };
                if me % 2 == 0 {
                    std::panic::panic_any(me);
                }
                me
            })
        })
        .collect();
    for (me, j) in joins.into_iter().enumerate() {
        match j.join() {
            Ok(v) => assert!(me % 2 == 1 && v == me),
            Err(e) => assert_eq!(*e.downcast::<usize>().unwrap(), me),
        }
    }
    let _ = std::panic::take_hook();
    assert!(poisoned.is_poisoned() && poisoned.lock().is_err());
}

fn main() {
    let n = threads();
    mutex(n);
    condvar(n);
    rwlock(n);
    barrier(n);
    channels(n);
    park(n);
    once_and_panics(n);
    println!("ok lang_rust_sync");
}
