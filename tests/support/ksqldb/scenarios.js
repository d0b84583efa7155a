// Runs scenarios of ksqlDB clients for Node against one server and prints one JSON line for each:
//   node scenarios.js URL SCENARIO...
//   {"scenario": "ksqldb-js-push", "facts": {...}}  or  {"scenario": ..., "error": "..."}
// The facts are what the client saw; whether they are right is for the caller to say.

const { setTimeout: delay } = require('timers/promises')
const KsqldbClient = require('ksqldb-client')
const KsqldbJs = require('ksqldb-js')
const { KsqlDBClient: RxClient } = require('ksqldb-rx-client')

const PATIENCE_MS = 60000

const [url, ...names] = process.argv.slice(2)

async function until (what, find) {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await find()
    if (found) return found
    if (Date.now() > deadline) throw new Error(`${what} did not come in ${PATIENCE_MS} ms`)
    await delay(50)
  }
}

// --- ksqldb-client ---------------------------------------------------------------------------

async function withClient (use) {
  const { hostname, port } = new URL(url)
  const client = new KsqldbClient({ host: hostname, port })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}

const EARLIEST = { streamsProperties: { 'auto.offset.reset': 'earliest' } }

async function simpleStatements () {
  return withClient(async client => {
    const created = await client.executeStatement(
      "CREATE STREAM simple_words (id INT KEY, word STRING) WITH (kafka_topic='${topic}', " +
      "value_format='JSON', partitions=1);", { sessionVariables: { topic: 'simple-words' } })
    const counted = await client.executeStatement(
      'CREATE TABLE simple_counts AS SELECT word, COUNT(*) AS n FROM simple_words GROUP BY word;',
      EARLIEST)
    const [{ commandStatus }] = counted.data.rows
    const streams = await client.listStreams()
    const tables = await client.listTables()
    const topics = await client.listTopics()
    const queries = await client.listQueries()
    const described = await client.describeSource('simple_counts')
    const terminated = await client.executeStatement(`TERMINATE ${commandStatus.queryId};`)
    const dropped = await client.executeStatement('DROP TABLE simple_counts;')
    return {
      created: created.data.rows[0].commandStatus.status,
      stream: streams.find(each => each.name === 'SIMPLE_WORDS'),
      table: tables.find(each => each.name === 'SIMPLE_COUNTS'),
      topic: topics.some(each => each.name === 'simple-words'),
      query: queries.find(each => each.id === commandStatus.queryId).sinks,
      fields: described.fields.map(each => [each.name, each.schema.type]),
      terminated: terminated.status,
      dropped: dropped.data.rows[0].commandStatus.status,
    }
  })
}

async function simpleRows () {
  return withClient(async client => {
    await client.executeStatement(
      "CREATE STREAM simple_sales (item STRING KEY, amount INT) WITH (kafka_topic='simple-sales', " +
      "value_format='JSON', partitions=1);")
    await client.executeStatement(
      'CREATE TABLE simple_sums AS SELECT item, SUM(amount) AS total FROM simple_sales ' +
      'GROUP BY item;', EARLIEST)
    const seen = []
    let queryId
    const pushed = client.streamQuery('SELECT * FROM simple_sales EMIT CHANGES;', data => {
      queryId = data.metadata.queryId
      seen.push(...(data.rows || []))
    }, EARLIEST)
    const inserted = []
    for (const [ITEM, AMOUNT] of [['a', 1], ['b', 2], ['a', 3]]) {
      inserted.push(await client.insertInto('simple_sales', { ITEM, AMOUNT }))
    }
    await until('rows of the push query', () => seen.length >= 3)
    const closed = await client.terminatePushQuery(queryId)
    const ended = await pushed
    const rows = await until('the sums', async () => {
      const { data } = await client.query("SELECT * FROM simple_sums WHERE item = 'a';")
      return data && data.rows.length && data.rows[0].TOTAL === 4 && data.rows
    })
    return {
      inserted: inserted.map(each => each.data.rows),
      seen,
      closed: closed.status,
      ended: ended.status,
      rows,
    }
  })
}

async function simpleErrors () {
  return withClient(async client => {
    const statement = await client.executeStatement('DROP STREAM simple_nowhere;')
    const query = await client.query('SELECT * FROM simple_nowhere;')
    const pushed = await client.streamQuery('SELECT * FROM simple_nowhere EMIT CHANGES;', () => {})
    const found = [statement, query, pushed]
    return {
      statuses: found.map(each => each.status),
      codes: found.map(each => each.error.error_code),
      messages: found.map(each => each.error.message),
    }
  })
}

// --- ksqldb-js -------------------------------------------------------------------------------

const client = new KsqldbJs({ ksqldbURL: url })

async function jsStatements () {
  await client.createStream('js_riders', ['name STRING KEY', 'speed INT'], 'js-riders', 'json', 1)
  await client.createTable('js_places', ['name STRING PRIMARY KEY', 'city STRING'], 'js-places',
    'json', 1)
  await until('a table that nobody waits for', async () => (
    (await client.ksql('LIST TABLES;')).tables.some(each => each.name === 'JS_PLACES')))
  const fast = await client.createStreamAs('js_fast', ['name', 'speed'], 'js_riders',
    { kafka_topic: 'js-fast', value_format: 'json' }, 'speed > 10')
  const table = await client.createTableAs('js_most', 'js_riders',
    ['name', 'MAX(speed) AS most'], { topic: 'js-most' },
    { WHERE: 'speed > 0', GROUP_BY: 'name', HAVING: 'COUNT(*) > 0' })
  const described = await client.ksql('DESCRIBE js_most;')
  const terminated = await client.terminate(fast)
  const status = await client.inspectQueryStatus(table.data[0].commandId)
  return {
    query: fast,
    created: table.data[0].commandStatus.status,
    fields: described.sourceDescription.fields.map(each => each.name),
    terminated: terminated.commandStatus.status,
    status: status.data.status,
  }
}

async function jsRows () {
  await client.createStream('js_laps', ['name STRING KEY', 'lap INT'], 'js-laps', 'json', 1)
  const seen = []
  const queryId = await client.push('SELECT * FROM js_laps EMIT CHANGES;', chunk => {
    seen.push(JSON.parse(chunk))
  })
  const laps = Array.from({ length: 20 }, (_, number) => ({ name: `r${number % 3}`, lap: number }))
  const inserted = await client.insertStream('js_laps', laps)
  await until('rows of the push query', () => seen.length > laps.length)
  const terminated = await client.terminate(queryId).then(
    answer => answer.wasTerminated, error => error.message)
  const pulled = await client.pull('SELECT * FROM js_laps;')
  const dated = await client.pullFromTo('js_laps', 'America/Los_Angeles',
    ['2020-01-01', '00', '00', '00'])
  return {
    inserted: inserted.map(each => [each.status, each.seq]),
    columns: seen[0].columnNames,
    seen: seen.slice(1),
    terminated,
    pulled: pulled.slice(1),
    dated: dated.map(each => each.slice(0, 2)),
  }
}

async function jsErrors () {
  const errors = []
  for (const attempt of [
    () => client.ksql('DROP STREAM js_nowhere;'),
    () => client.pull('SELECT * FROM js_nowhere;'),
    () => client.isValidProperty('ksql.service.id'),
    () => client.inspectQueryStatus('stream/NOWHERE/create'),
  ]) {
    await attempt().catch(error => errors.push([error.name, error.error_code, error.message]))
  }
  return { errors }
}

async function jsAbout () {
  const [info, health, cluster, valid] = await Promise.all([
    client.inspectServerInfo(),
    client.inspectServerHealth(),
    client.inspectClusterStatus().catch(error => ({ data: [error.error_code, error.message] })),
    client.isValidProperty('auto.offset.reset'),
  ])
  return {
    info: Object.keys(info.data.KsqlServerInfo),
    healthy: health.data.isHealthy,
    cluster: cluster.data,
    valid: valid.data,
  }
}

// --- ksqldb-rx-client ------------------------------------------------------------------------

async function reactive () {
  const client = new RxClient(url)
  try {
    const created = await client.statement(
      "CREATE STREAM rx_ticks (id INT KEY, price DOUBLE) WITH (kafka_topic='rx-ticks', " +
      "value_format='JSON', partitions=1);")
    for (const id of [1, 2, 3]) {
      await client.statement(`INSERT INTO rx_ticks VALUES (${id}, ${id}.5);`)
    }
    const seen = await new Promise((resolve, reject) => {
      const rows = []
      client.queryStream({
        sql: 'SELECT * FROM rx_ticks EMIT CHANGES LIMIT 3;',
        properties: { 'auto.offset.reset': 'earliest' },
      }).subscribe({ next: row => rows.push(row), error: reject, complete: () => resolve(rows) })
    })
    const streams = await client.listStreamsExtended()
    const plain = await client.listStreams()
    const tables = await client.listTables()
    const info = await client.getInfo()
    const health = await client.getHealthcheck()
    const refused = await client.statement('DROP STREAM rx_nowhere;')
    return {
      created: created[0].commandStatus.status,
      seen,
      extended: streams.sourceDescriptions.some(each => each.name === 'RX_TICKS'),
      plain: plain.streams.some(each => each.name === 'RX_TICKS'),
      tables: tables['@type'],
      status: info.KsqlServerInfo.serverStatus,
      healthy: health.isHealthy,
      refused: refused.error_code,
    }
  } finally {
    client.close()
  }
}

// Last of all: the server has nothing left after it.
async function jsTerminateCluster () {
  const answer = await client.terminateCluster(['js-laps'])
  const refused = await client.ksql('LIST STREAMS;').catch(error => error.error_code)
  return { answer: answer.data, refused }
}

const scenarios = {
  'ksqldb-client-statements': simpleStatements,
  'ksqldb-client-rows': simpleRows,
  'ksqldb-client-errors': simpleErrors,
  'ksqldb-js-statements': jsStatements,
  'ksqldb-js-rows': jsRows,
  'ksqldb-js-errors': jsErrors,
  'ksqldb-js-about': jsAbout,
  'ksqldb-rx-client': reactive,
  'ksqldb-js-terminate-cluster': jsTerminateCluster,
}

async function run (name) {
  try {
    return { scenario: name, facts: await scenarios[name]() }
  } catch (error) {
    return { scenario: name, error: error.stack }
  }
}

(async () => {
  for (const name of names) console.log(JSON.stringify(await run(name)))
})()
