// See CMakeLists.txt: the library that a plug-in misses.
extern "C" __attribute__((visibility("default"))) int timetrial_test_absent() { return 0; }
