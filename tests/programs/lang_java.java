// HotSpot: synchronized/wait/notify, java.util.concurrent locks, queues, parallel streams,
// interruption and many garbage collections (safepoints stop all threads by page faults). Run it as
// a single source file: java lang_java.java
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;
import java.util.stream.*;

public class lang_java {
    static final int THREADS = Math.min(64, Integer.parseInt(System.getenv().getOrDefault("THREADS", "4")));

    interface Body { void run(int i) throws Exception; }

    static void check(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    static void run(Body body) throws Exception {
        List<Thread> threads = new ArrayList<>();
        Queue<Throwable> errors = new ConcurrentLinkedQueue<>();
        for (int i = 0; i < THREADS; i++) {
            int me = i;
            Thread t = new Thread(() -> {
                try { body.run(me); } catch (Throwable e) { errors.add(e); }
            });
            t.start();
            threads.add(t);
        }
        for (Thread t : threads) t.join();
        check(errors.isEmpty(), errors.toString());
    }

    static int turn, counter;

    static void monitors() throws Exception {
        Object o = new Object();
        int rounds = Math.max(1, 20000 / THREADS);
        run(i -> { for (int k = 0; k < rounds; k++) synchronized (o) { counter++; } });
        check(counter == rounds * THREADS, "synchronized: " + counter);
        int passes = Math.max(1, 800 / THREADS);
        run(i -> {
            for (int k = 0; k < passes; k++) synchronized (o) {
                while (turn % THREADS != i) o.wait();
                turn++;
                o.notifyAll();
            }
        });
        check(turn == passes * THREADS, "turns: " + turn);
        long start = System.nanoTime();
        synchronized (o) { o.wait(5); }
        check(System.nanoTime() - start >= 4_000_000, "wait(5) early"); // rounded by the JVM
    }

    static void concurrent() throws Exception {
        ReentrantLock lock = new ReentrantLock(true);
        Condition c = lock.newCondition();
        int[] n = {0};
        int rounds = Math.max(1, 1000 / THREADS);
        run(i -> {
            for (int k = 0; k < rounds; k++) {
                lock.lock();
                try { n[0]++; c.signalAll(); } finally { lock.unlock(); }
            }
        });
        check(n[0] == rounds * THREADS, "ReentrantLock: " + n[0]);
        CyclicBarrier barrier = new CyclicBarrier(THREADS, () -> n[0] = 0);
        AtomicInteger arrived = new AtomicInteger();
        run(i -> {
            for (int k = 1; k <= 20; k++) {
                arrived.incrementAndGet();
                barrier.await();
                check(arrived.get() >= k * THREADS, "barrier early");
            }
        });
        BlockingQueue<Integer> q = new ArrayBlockingQueue<>(3);
        AtomicLong sum = new AtomicLong();
        run(i -> { for (int k = 0; k < 50; k++) if (i % 2 == 0) { if (i + 1 < THREADS) q.put(k); } else sum.addAndGet(q.take()); });
        check(sum.get() == (long) (THREADS / 2) * 1225, "queue sum " + sum);
        ReadWriteLock rw = new ReentrantReadWriteLock();
        long[] pair = {0, 0};
        run(i -> {
            for (int k = 0; k < 100; k++) {
                if ((i + k) % 4 == 0) { rw.writeLock().lock(); pair[0]++; pair[1]++; rw.writeLock().unlock(); }
                else { rw.readLock().lock(); long a = pair[0], b = pair[1]; rw.readLock().unlock(); check(a == b, "half an update"); }
            }
        });
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<Integer>> fs = new ArrayList<>();
        for (int i = 0; i < 200; i++) { int x = i; fs.add(pool.submit(() -> x * x)); }
        for (int i = 0; i < 200; i++) check(fs.get(i).get() == i * i, "future " + i);
        pool.shutdown();
        check(pool.awaitTermination(60, TimeUnit.SECONDS), "pool");
        check(IntStream.range(0, 200000).parallel().mapToLong(x -> x).sum() == 19999900000L, "parallel stream");
    }

    static volatile Object garbage;

    static void collections() throws Exception {
        run(i -> {
            for (int k = 0; k < 2000 / THREADS + 1; k++) {
                byte[][] b = new byte[20][];
                for (int j = 0; j < 20; j++) b[j] = new byte[4096];
                garbage = b;
                if (k % 500 == 0) System.gc();
            }
        });
        Thread t = new Thread(() -> LockSupport.park());
        t.start();
        LockSupport.unpark(t);
        t.join();
        Thread s = new Thread(() -> {
            try { Thread.sleep(100000); check(false, "slept"); } catch (InterruptedException e) { counter = -1; }
        });
        s.start();
        s.interrupt();
        s.join();
        check(counter == -1, "not interrupted");
    }

    public static void main(String[] args) {
        try {
            monitors();
            concurrent();
            collections();
        } catch (Throwable e) {
            System.out.println("FAIL " + e);
            Runtime.getRuntime().halt(1);
        }
        System.out.println("ok lang_java");
    }
}
