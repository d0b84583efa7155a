/* The records section of a batch in C: the functions of broker/batch/records.py, same results.

   The layout of a record is at the top of broker/batch/layout.py. The bytes come from outside:
   every read goes through a cursor that knows its end, and anything that is no record raises
   ValueError. Nothing here keeps state. Encoding is in _speed_encode.c. */

#include "_speed.h"

#define RECORD_BYTES_MIN 7

/* --- reading ------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
} Cursor;

/* What the batch around the records says. */
typedef struct {
    Py_ssize_t count;
    long long last_offset_delta;
    long long base_offset;
    long long base_timestamp;
    int fixed_timestamp;
} Section;

typedef struct {
    long long offset;
    long long timestamp;
    Span key;
    Span value;
    PyObject *headers; /* new reference; only `read_record` fills it */
} Record;

static int
read_varlong(Cursor *cursor, int bytes_max, int64_t *result)
{
    uint64_t value = 0;
    for (int index = 0; index < bytes_max; index++) {
        if (cursor->at >= cursor->end)
            return refuse("the last record is truncated");
        uint8_t byte = *cursor->at++;
        /* The last byte of the longest form has room for the top bits only. */
        if (index == VARLONG_BYTES_MAX - 1 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) {
            if (bytes_max == VARINT_BYTES_MAX && value >> 32)
                break;
            *result = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            return 0;
        }
    }
    return refuse("varint is too long");
}

/* Nearly all numbers of a record take one or two bytes. */
static inline int
read_number(Cursor *cursor, int bytes_max, int64_t *result)
{
    const uint8_t *at = cursor->at;
    uint32_t value;
    if (at < cursor->end && at[0] < 0x80) {
        value = at[0];
        cursor->at = at + 1;
    } else if (cursor->end - at >= 2 && at[1] < 0x80) {
        value = (at[0] & 0x7F) | (uint32_t)at[1] << 7;
        cursor->at = at + 2;
    } else {
        return read_varlong(cursor, bytes_max, result);
    }
    *result = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    return 0;
}

static inline int
read_varint(Cursor *cursor, int64_t *result)
{
    return read_number(cursor, VARINT_BYTES_MAX, result);
}

static inline int
read_span(Cursor *cursor, Span *span)
{
    int64_t size;
    if (read_varint(cursor, &size) < 0)
        return -1;
    if (size == -1) {
        span->data = NULL;
        span->size = 0;
        return 0;
    }
    if (size < 0)
        return refuse("size is negative");
    if (size > cursor->end - cursor->at)
        return refuse("a field runs past the end of its record");
    span->data = cursor->at;
    span->size = (Py_ssize_t)size;
    cursor->at += size;
    return 0;
}

static inline PyObject *
span_bytes(const Span *span)
{
    if (span->data == NULL)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)span->data, span->size);
}

static PyObject *
read_header(Cursor *cursor)
{
    Span name, value;
    if (read_span(cursor, &name) < 0)
        return NULL;
    if (name.data == NULL) {
        refuse("header key is null");
        return NULL;
    }
    if (read_span(cursor, &value) < 0)
        return NULL;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)name.data, name.size, "surrogateescape");
    if (text == NULL)
        return NULL;
    PyObject *data = span_bytes(&value);
    PyObject *pair = data == NULL ? NULL : PyTuple_Pack(2, text, data);
    Py_DECREF(text);
    Py_XDECREF(data);
    return pair;
}

static inline int
read_header_count(Cursor *cursor, int64_t *count)
{
    if (read_varint(cursor, count) < 0)
        return -1;
    /* A header takes two bytes at least, so a larger count is refused before it is allocated. */
    if (*count < 0 || *count > (cursor->end - cursor->at) / 2)
        return refuse("headers do not fit in their record");
    return 0;
}

static PyObject *
read_headers(Cursor *cursor)
{
    int64_t count;
    if (read_header_count(cursor, &count) < 0)
        return NULL;
    PyObject *headers = PyTuple_New((Py_ssize_t)count);
    if (headers == NULL)
        return NULL;
    for (Py_ssize_t index = 0; index < (Py_ssize_t)count; index++) {
        PyObject *pair = read_header(cursor);
        if (pair == NULL) {
            Py_DECREF(headers);
            return NULL;
        }
        PyTuple_SET_ITEM(headers, index, pair);
    }
    return headers;
}

static int
skip_headers(Cursor *cursor)
{
    int64_t count;
    if (read_header_count(cursor, &count) < 0)
        return -1;
    for (int64_t index = 0; index < count; index++) {
        Span name, value;
        if (read_span(cursor, &name) < 0 || read_span(cursor, &value) < 0)
            return -1;
        if (name.data == NULL)
            return refuse("header key is null");
    }
    return 0;
}

/* All of a record before its headers; the record's own cursor is left there. */
static inline int
read_fields(Cursor *section_cursor, const Section *section, Record *record, Cursor *own)
{
    int64_t size, delta, offset_delta;
    if (read_varint(section_cursor, &size) < 0)
        return -1;
    if (size < 1 || size > section_cursor->end - section_cursor->at)
        return refuse("a record runs past the end");
    /* The attributes byte is unused. */
    *own = (Cursor){section_cursor->start, section_cursor->at + 1, section_cursor->at + size};
    section_cursor->at = own->end;
    if (read_number(own, VARLONG_BYTES_MAX, &delta) < 0)
        return -1;
    if (read_varint(own, &offset_delta) < 0)
        return -1;
    if (offset_delta < 0 || offset_delta > section->last_offset_delta)
        return refuse("offset delta is outside the batch");
    record->offset = section->base_offset + offset_delta;
    if (section->fixed_timestamp)
        record->timestamp = section->base_timestamp;
    else if (__builtin_add_overflow(section->base_timestamp, (long long)delta, &record->timestamp))
        return refuse("timestamp is outside 64 bits");
    if (read_span(own, &record->key) < 0 || read_span(own, &record->value) < 0)
        return -1;
    return 0;
}

static int
read_record(Cursor *section_cursor, const Section *section, Record *record)
{
    Cursor own;
    if (read_fields(section_cursor, section, record, &own) < 0)
        return -1;
    record->headers = read_headers(&own);
    if (record->headers == NULL)
        return -1;
    if (own.at != own.end) {
        Py_DECREF(record->headers);
        return refuse("a record ends before its size");
    }
    return 0;
}

static int
parse_section(PyObject *tuple, Py_ssize_t data_size, Section *section)
{
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "section must be a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(
            tuple, "nLLLp;section", &section->count, &section->last_offset_delta,
            &section->base_offset, &section->base_timestamp, &section->fixed_timestamp))
        return -1;
    if (section->count < 0 || section->count > data_size / RECORD_BYTES_MIN)
        return refuse("there are fewer bytes than the records need");
    long long last_offset;
    if (__builtin_add_overflow(section->base_offset, section->last_offset_delta, &last_offset))
        return refuse("offset is outside 64 bits");
    return 0;
}

static int
check_end(const Cursor *cursor)
{
    return cursor->at == cursor->end ? 0 : refuse("bytes follow the last record");
}

/* --- decoding to rows ---------------------------------------------------------------------- */

typedef struct {
    PyTypeObject *type;
    PyObject *prefix; /* items that come before those of the record, equal in all rows */
} RowShape;

static PyObject *
make_row(const RowShape *shape, Record *record)
{
    /* The row type is a named tuple: a tuple with other names for its items. */
    Py_ssize_t first = PyTuple_GET_SIZE(shape->prefix);
    PyObject *row = shape->type->tp_alloc(shape->type, first + 5);
    if (row == NULL) {
        Py_DECREF(record->headers);
        return NULL;
    }
    for (Py_ssize_t index = 0; index < first; index++) {
        PyObject *item = PyTuple_GET_ITEM(shape->prefix, index);
        Py_INCREF(item);
        PyTuple_SET_ITEM(row, index, item);
    }
    PyTuple_SET_ITEM(row, first + 4, record->headers);
    PyObject *offset = PyLong_FromLongLong(record->offset);
    PyTuple_SET_ITEM(row, first, offset);
    PyObject *timestamp = PyLong_FromLongLong(record->timestamp);
    PyTuple_SET_ITEM(row, first + 1, timestamp);
    PyObject *key = span_bytes(&record->key);
    PyTuple_SET_ITEM(row, first + 2, key);
    PyObject *value = span_bytes(&record->value);
    PyTuple_SET_ITEM(row, first + 3, value);
    if (offset == NULL || timestamp == NULL || key == NULL || value == NULL) {
        Py_DECREF(row);
        return NULL;
    }
    /* Nothing in it can refer back to it, and the garbage collector's visits would cost more than
       decoding does. */
    PyObject_GC_UnTrack(row);
    return row;
}

static int
fill_rows(PyObject *rows, Cursor *cursor, const Section *section, const RowShape *shape)
{
    for (Py_ssize_t index = 0; index < section->count; index++) {
        Record record;
        if (read_record(cursor, section, &record) < 0)
            return -1;
        PyObject *row = make_row(shape, &record);
        if (row == NULL)
            return -1;
        PyList_SET_ITEM(rows, index, row);
    }
    return check_end(cursor);
}

static PyObject *
decode_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    PyObject *tuple;
    RowShape shape = {NULL, NULL};
    if (!PyArg_ParseTuple(
            arguments, "y*OO!|O!", &data, &tuple, &PyType_Type, &shape.type, &PyTuple_Type,
            &shape.prefix))
        return NULL;
    PyObject *rows = NULL;
    PyObject *nothing = PyTuple_New(0);
    if (nothing == NULL)
        goto done;
    if (shape.prefix == NULL)
        shape.prefix = nothing;
    Section section;
    if (!PyType_IsSubtype(shape.type, &PyTuple_Type) ||
        shape.type->tp_basicsize != PyTuple_Type.tp_basicsize) {
        PyErr_SetString(PyExc_TypeError, "row type must be a named tuple");
        goto done;
    }
    if (parse_section(tuple, data.len, &section) < 0)
        goto done;
    rows = PyList_New(section.count);
    if (rows == NULL)
        goto done;
    const uint8_t *start = data.buf;
    Cursor cursor = {start, start, start + data.len};
    if (fill_rows(rows, &cursor, &section, &shape) < 0)
        Py_CLEAR(rows);
done:
    Py_XDECREF(nothing);
    PyBuffer_Release(&data);
    return rows;
}

/* --- decoding to columns ------------------------------------------------------------------- */

#define COLUMNS_LONG 2
#define COLUMNS_INT 4

typedef struct {
    Py_buffer buffers[COLUMNS_LONG + COLUMNS_INT];
    int held;
} Columns;

static int
hold_arrays(Columns *columns, PyObject *arrays, Py_ssize_t expected, Py_ssize_t bytes_min)
{
    PyObject *items = PySequence_Tuple(arrays);
    if (items == NULL)
        return -1;
    int result = -1;
    if (PyTuple_GET_SIZE(items) != expected) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arrays");
        goto done;
    }
    for (Py_ssize_t index = 0; index < expected; index++) {
        Py_buffer *buffer = &columns->buffers[columns->held];
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(items, index), buffer, PyBUF_WRITABLE) < 0)
            goto done;
        columns->held++;
        if (buffer->len < bytes_min) {
            PyErr_SetString(PyExc_TypeError, "array is shorter than the batch");
            goto done;
        }
    }
    result = 0;
done:
    Py_DECREF(items);
    return result;
}

static void
release_arrays(Columns *columns)
{
    for (int index = 0; index < columns->held; index++)
        PyBuffer_Release(&columns->buffers[index]);
}

static inline void
put_span(const Columns *columns, int first, Py_ssize_t row, const Cursor *cursor, const Span *span)
{
    int32_t *starts = columns->buffers[first].buf;
    int32_t *ends = columns->buffers[first + 1].buf;
    if (span->data == NULL) {
        starts[row] = ends[row] = -1;
    } else {
        starts[row] = (int32_t)(span->data - cursor->start);
        ends[row] = (int32_t)(span->data - cursor->start + span->size);
    }
}

/* Put one record's headers into the list, which is made when the first record has any. */
static int
put_headers(PyObject **list, Py_ssize_t row, Py_ssize_t count, PyObject *headers)
{
    if (*list == NULL) {
        if (PyTuple_GET_SIZE(headers) == 0) {
            Py_DECREF(headers);
            return 0;
        }
        *list = PyList_New(count);
        if (*list == NULL) {
            Py_DECREF(headers);
            return -1;
        }
        for (Py_ssize_t index = 0; index < count; index++) {
            PyObject *empty = PyTuple_New(0);
            if (empty == NULL) {
                Py_DECREF(headers);
                return -1;
            }
            PyList_SET_ITEM(*list, index, empty);
        }
    }
    return PyList_SetItem(*list, row, headers);
}

static int
fill_columns(Columns *columns, Cursor *cursor, const Section *section, PyObject **headers)
{
    int64_t *offsets = columns->buffers[0].buf;
    int64_t *timestamps = columns->buffers[1].buf;
    for (Py_ssize_t row = 0; row < section->count; row++) {
        Record record;
        if (read_record(cursor, section, &record) < 0)
            return -1;
        offsets[row] = record.offset;
        timestamps[row] = record.timestamp;
        put_span(columns, COLUMNS_LONG, row, cursor, &record.key);
        put_span(columns, COLUMNS_LONG + 2, row, cursor, &record.value);
        if (put_headers(headers, row, section->count, record.headers) < 0)
            return -1;
    }
    return check_end(cursor);
}

static PyObject *
decode_arrays(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    PyObject *tuple, *longs, *ints;
    if (!PyArg_ParseTuple(arguments, "y*OOO", &data, &tuple, &longs, &ints))
        return NULL;
    PyObject *headers = NULL;
    Columns columns = {.held = 0};
    Section section;
    int failed = 1;
    if (parse_section(tuple, data.len, &section) < 0)
        goto done;
    if (data.len > INT32_MAX) {
        refuse("records take more than 2 GiB");
        goto done;
    }
    if (hold_arrays(&columns, longs, COLUMNS_LONG, section.count * 8) < 0 ||
        hold_arrays(&columns, ints, COLUMNS_INT, section.count * 4) < 0)
        goto done;
    const uint8_t *start = data.buf;
    Cursor cursor = {start, start, start + data.len};
    failed = fill_columns(&columns, &cursor, &section, &headers) < 0;
done:
    release_arrays(&columns);
    PyBuffer_Release(&data);
    if (failed) {
        Py_XDECREF(headers);
        return NULL;
    }
    return headers == NULL ? Py_NewRef(Py_None) : headers;
}

/* --- decoding to lists --------------------------------------------------------------------- */

#define LISTS 4 /* offsets, timestamps, keys, values */

static int
fill_lists(PyObject **lists, Cursor *cursor, const Section *section, PyObject **headers)
{
    for (Py_ssize_t row = 0; row < section->count; row++) {
        Record record;
        if (read_record(cursor, section, &record) < 0)
            return -1;
        if (put_headers(headers, row, section->count, record.headers) < 0)
            return -1;
        PyObject *items[LISTS] = {
            PyLong_FromLongLong(record.offset), PyLong_FromLongLong(record.timestamp),
            span_bytes(&record.key), span_bytes(&record.value)};
        int failed = 0;
        for (int index = 0; index < LISTS; index++) {
            failed |= items[index] == NULL;
            PyList_SET_ITEM(lists[index], row, items[index]);
        }
        if (failed)
            return -1;
    }
    return check_end(cursor);
}

static PyObject *
decode_lists(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    PyObject *tuple;
    if (!PyArg_ParseTuple(arguments, "y*O", &data, &tuple))
        return NULL;
    PyObject *lists[LISTS] = {NULL, NULL, NULL, NULL};
    PyObject *headers = NULL, *result = NULL;
    Section section;
    if (parse_section(tuple, data.len, &section) < 0)
        goto done;
    for (int index = 0; index < LISTS; index++) {
        lists[index] = PyList_New(section.count);
        if (lists[index] == NULL)
            goto done;
    }
    const uint8_t *start = data.buf;
    Cursor cursor = {start, start, start + data.len};
    if (fill_lists(lists, &cursor, &section, &headers) == 0)
        result = PyTuple_Pack(
            LISTS + 1, lists[0], lists[1], lists[2], lists[3],
            headers == NULL ? Py_None : headers);
done:
    for (int index = 0; index < LISTS; index++)
        Py_XDECREF(lists[index]);
    Py_XDECREF(headers);
    PyBuffer_Release(&data);
    return result;
}

/* --- checking without decoding ------------------------------------------------------------- */

typedef struct {
    long long first_timestamp; /* the earliest of all */
    long long last_timestamp;
    int has_null_keys;
} Facts;

/* As the readers above, but for what they would make; offsets must be 0, 1, 2, ... too. */
static int
walk(Cursor *cursor, const Section *section, Facts *facts)
{
    for (Py_ssize_t row = 0; row < section->count; row++) {
        Record record;
        Cursor own;
        if (read_fields(cursor, section, &record, &own) < 0 || skip_headers(&own) < 0)
            return -1;
        if (own.at != own.end)
            return refuse("a record ends before its size");
        if (record.offset != section->base_offset + row)
            return refuse("offset deltas are not consecutive from 0");
        if (row == 0 || record.timestamp < facts->first_timestamp)
            facts->first_timestamp = record.timestamp;
        if (row == 0 || record.timestamp > facts->last_timestamp)
            facts->last_timestamp = record.timestamp;
        facts->has_null_keys |= record.key.data == NULL;
    }
    return check_end(cursor);
}

static PyObject *
check_section(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    PyObject *tuple, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "y*O", &data, &tuple))
        return NULL;
    Section section;
    if (parse_section(tuple, data.len, &section) == 0) {
        const uint8_t *start = data.buf;
        Cursor cursor = {start, start, start + data.len};
        Facts facts = {section.base_timestamp, section.base_timestamp, 0};
        if (walk(&cursor, &section, &facts) == 0)
            result = Py_BuildValue(
                "LLN", facts.first_timestamp, facts.last_timestamp,
                PyBool_FromLong(facts.has_null_keys));
    }
    PyBuffer_Release(&data);
    return result;
}

/* --- the module ---------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"encode_rows", encode_rows, METH_O, "Encode new records: section, base and max timestamp."},
    {"encode_kept", encode_kept, METH_VARARGS, "Encode records that already have offsets."},
    {"decode_rows", decode_rows, METH_VARARGS, "Decode all records of a section."},
    {"decode_lists", decode_lists, METH_VARARGS, "Decode a section into lists, one per field."},
    {"decode_arrays", decode_arrays, METH_VARARGS, "Decode a section into columns."},
    {"check_section", check_section, METH_VARARGS, "Check a section as decoding would."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "broker.batch._speed",
    .m_doc = "Records of a batch, encoded and decoded in C.",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__speed(void)
{
    return PyModuleDef_Init(&definition);
}
