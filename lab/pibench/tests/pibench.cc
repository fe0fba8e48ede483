// Uses the library as PiBench does: loads it, creates a tree, and calls it as a C++ class. The declarations are those
// of PiBench's tree_api.hpp; with -DBULK_LOAD, those of its newer version.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>

struct tree_options_t {
    size_t key_size, value_size;
    std::string pool_path;
    size_t pool_size, num_threads;
};

class tree_api {
public:
    virtual ~tree_api() {}
#ifdef BULK_LOAD
    virtual bool bulk_load(const char *, size_t, size_t, size_t) { return true; }
#endif
    virtual bool find(const char *key, size_t sz, char *value_out) = 0;
    virtual bool insert(const char *key, size_t key_sz, const char *value, size_t value_sz) = 0;
    virtual bool update(const char *key, size_t key_sz, const char *value, size_t value_sz) = 0;
    virtual bool remove(const char *key, size_t key_sz) = 0;
    virtual int scan(const char *key, size_t key_sz, int scan_sz, char *&values_out) = 0;
};

#define CHECK(what)                                                                                                    \
    if (!(what)) {                                                                                                     \
        std::printf("line %d: %s\n", __LINE__, #what);                                                                 \
        return 1;                                                                                                      \
    }

int main(int, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    CHECK(library);
    auto create = reinterpret_cast<tree_api *(*)(const tree_options_t &)>(dlsym(library, "create_tree"));
    CHECK(create);
    tree_options_t options{8, 8, arguments[2], 0, 1};
    tree_api *tree = create(options);
    CHECK(tree);
#ifdef BULK_LOAD
    CHECK(!tree->bulk_load(nullptr, 0, 8, 8));
#endif
    char key[9] = "key00000", value[8], *found;
    for (uint64_t i = 0; i < 1000; ++i) {
        std::snprintf(key, sizeof key, "key%05u", unsigned(i));
        std::memcpy(value, &i, 8);
        CHECK(tree->insert(key, 8, value, 8));
        CHECK(!tree->insert(key, 8, value, 8));
    }
    uint64_t number = 7;
    CHECK(tree->find("key00500", 8, value));
    std::memcpy(&number, value, 8);
    CHECK(number == 500);
    CHECK(!tree->find("nothing.", 8, value));
    number = 70;
    std::memcpy(value, &number, 8);
    CHECK(tree->update("key00007", 8, value, 8));
    CHECK(!tree->update("nothing.", 8, value, 8));
    CHECK(tree->scan("key00005", 8, 3, found) == 3);
    CHECK(std::memcmp(found, "key00005", 8) == 0 && std::memcmp(found + 32, "key00007", 8) == 0);
    std::memcpy(&number, found + 40, 8);
    CHECK(number == 70);
    CHECK(tree->scan("key00998", 8, 100, found) == 2);
    CHECK(tree->remove("key00007", 8));
    CHECK(!tree->remove("key00007", 8));
    CHECK(!tree->find("key00007", 8, value));
    delete tree;
    return 0;
}
