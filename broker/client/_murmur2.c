/* murmur2 of a key as the Java client has it: 32 bits, seed 0x9747b28c, unsigned. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define SEED 0x9747b28cu
#define MULTIPLIER 0x5bd1e995u

static uint32_t
hash_bytes(const uint8_t *data, size_t size)
{
    uint32_t hashed = SEED ^ (uint32_t)size;
    for (; size >= 4; data += 4, size -= 4) {
        uint32_t word = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                        (uint32_t)data[3] << 24;
        word *= MULTIPLIER;
        word = (word ^ word >> 24) * MULTIPLIER;
        hashed = (hashed * MULTIPLIER) ^ word;
    }
    if (size > 0) {
        for (size_t index = 0; index < size; index++)
            hashed ^= (uint32_t)data[index] << (8 * index);
        hashed *= MULTIPLIER;
    }
    hashed = (hashed ^ hashed >> 13) * MULTIPLIER;
    return hashed ^ hashed >> 15;
}

static PyObject *
murmur2(PyObject *Py_UNUSED(module), PyObject *object)
{
    Py_buffer data;
    if (PyObject_GetBuffer(object, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t hashed = hash_bytes(data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(hashed);
}

static PyMethodDef methods[] = {
    {"murmur2", murmur2, METH_O, "The hash of a key's bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "broker.client._murmur2",
    .m_doc = "murmur2 in C.",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__murmur2(void)
{
    return PyModuleDef_Init(&definition);
}
