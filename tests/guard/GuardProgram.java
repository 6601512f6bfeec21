// SPDX-License-Identifier: Apache-2.0
/** Null dereferences, stack overflows and collections in threads that use the card meanwhile. */
public class GuardProgram {
    static native int start();
    static native long allocate(int size);
    static native int circle(long block, int value);
    static native int touch(long block);

    int field;

    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    static void work() {
        long block = allocate(4096);
        for (int i = 0; i < 20000; i++) {
            if (circle(block, i & 127) != (i & 127)) {
                System.out.println("wrong byte");
                System.exit(1);
            }
            try {
                GuardProgram none = i % 2 == 0 ? null : new GuardProgram();
                none.field++;
            } catch (NullPointerException e) {
                // the machine's own SIGSEGV, once the code is compiled
            }
            if (i % 5000 == 0) {
                System.gc();
                try {
                    deep(0);
                } catch (StackOverflowError e) {
                    // and this one
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        System.loadLibrary("guardjni");
        if (start() != 0) {
            System.exit(2);
        }
        if (args[0].equals("touch")) {
            touch(allocate(4096));
        }
        for (int round = 0; round < 3; round++) {
            Thread[] threads = new Thread[4];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(GuardProgram::work);
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        System.out.println("done");
    }
}
