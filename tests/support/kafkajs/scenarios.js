// Runs scenarios of kafkajs against one broker and prints one JSON line for each:
//   node scenarios.js BOOTSTRAP SCENARIO...
//   {"scenario": "transactions", "facts": {...}}  or  {"scenario": ..., "error": "..."}
// The facts are what the client saw; whether they are right is for the caller to say.

const { randomUUID } = require('crypto')
const { setTimeout: delay } = require('timers/promises')
const { AssignerProtocol, CompressionTypes, Kafka, logLevel } = require('kafkajs')

const FIRST_TIMESTAMP_MS = 1700000000000
const PARTITIONS = 4

const [bootstrap, ...names] = process.argv.slice(2)
const kafka = new Kafka({
  clientId: 'scenarios',
  brokers: [bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 10 },
})
const admin = kafka.admin()

const unique = prefix => `${prefix}-${randomUUID().slice(0, 8)}`

async function waitUntil (what, condition) {
  const deadline = Date.now() + 30000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`${what} did not come in 30 s`)
    await delay(20)
  }
}

async function newTopic (prefix) {
  const topic = unique(prefix)
  await admin.createTopics({
    topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }],
    waitForLeaders: false,
  })
  await waitUntil(`the leaders of ${topic}`, () => (
    admin.fetchTopicOffsets(topic).then(offsets => offsets.length === PARTITIONS, () => false)))
  return topic
}

async function withProducer (settings, use) {
  const producer = kafka.producer(settings)
  await producer.connect()
  try {
    return await use(producer)
  } finally {
    await producer.disconnect()
  }
}

// Sends 40 records, ten to each partition.
async function send (topic, prefix) {
  const messages = Array.from({ length: 40 }, (_, number) => (
    { partition: number % PARTITIONS, value: `${prefix}-${number}` }))
  await withProducer({}, producer => producer.send({ topic, messages }))
}

// A member of a group; its partitions and what it has taken can be looked at while it runs.
class Member {
  static async start (topic, group, { settings = {}, run = {} } = {}) {
    const member = new Member()
    member.taken = []
    member.partitions = []
    member.consumer = kafka.consumer({
      groupId: group, heartbeatInterval: 200, sessionTimeout: 10000, maxWaitTimeInMs: 200, ...settings,
    })
    member.consumer.on(member.consumer.events.GROUP_JOIN, ({ payload }) => {
      member.partitions = payload.memberAssignment[topic] || []
    })
    member.consumer.on(member.consumer.events.REBALANCING, () => { member.partitions = [] })
    await member.consumer.connect()
    await member.consumer.subscribe({ topics: [topic], fromBeginning: true })
    await member.consumer.run({
      eachMessage: async ({ partition, message }) => {
        member.taken.push({ partition, offset: Number(message.offset), message })
      },
      ...run,
    })
    return member
  }

  values () { return this.taken.map(each => each.message.value.toString()) }

  async stop () { await this.consumer.disconnect() }
}

const waitSplit = (members, sizes) => waitUntil(`a split into ${sizes}`, () => {
  const all = new Set(members.flatMap(member => member.partitions))
  return all.size === PARTITIONS &&
    members.every((member, number) => member.partitions.length === sizes[number])
})

// How many of the 40 records just sent each member took.
async function taken (members, distinct) {
  await waitUntil('40 records', () => members.reduce((sum, each) => sum + each.taken.length, 0) >= 40)
  return members.map(member => {
    const values = member.values()
    values.forEach(value => distinct.add(value))
    member.taken = []
    return values.length
  })
}

async function readAll (topic, count, settings = {}) {
  const member = await Member.start(topic, unique('reader'), { settings })
  try {
    await waitUntil(`${count} records`, () => member.taken.length >= count)
    return member.taken
  } finally {
    await member.stop()
  }
}

async function topics () {
  const topic = unique('managed')
  const fresh = { topic, numPartitions: 2, replicationFactor: 1, configEntries: [{ name: 'retention.ms', value: '5000' }] }
  await admin.createTopics({ topics: [fresh], waitForLeaders: false })
  const again = await admin.createTopics({ topics: [fresh], waitForLeaders: false })
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  await waitUntil('the third partition', async () => (
    (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length === 3))
  const resource = { type: 2, name: topic }
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ ...resource, configEntries: [{ name: 'cleanup.policy', value: 'compact' }, { name: 'retention.ms', value: '6000' }] }],
  })
  let configs
  await waitUntil('the changed settings', async () => {
    const described = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
    configs = Object.fromEntries(described.resources[0].configEntries.map(each => [each.configName, each.configValue]))
    return configs['cleanup.policy'] !== 'delete'
  })
  await admin.deleteTopics({ topics: [topic] })
  await waitUntil('the end of the topic', async () => !(await admin.listTopics()).includes(topic))
  return { again, retention: configs['retention.ms'], policy: configs['cleanup.policy'] }
}

const compression = name => async () => {
  const topic = await newTopic('whole')
  const messages = Array.from({ length: 100 }, (_, number) => ({
    partition: 1,
    key: `key-${number}`,
    value: `${number}-${'abc'.repeat(50)}`,
    timestamp: String(FIRST_TIMESTAMP_MS + number),
    headers: { number: String(number) },
  }))
  const codec = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }[name]
  await withProducer({}, producer => producer.send({ topic, messages, compression: codec }))
  const records = await readAll(topic, 100)
  return {
    topic,
    offsets: records.map(each => each.offset),
    keys: records.map(each => each.message.key.toString()),
    values: records.map(each => each.message.value.toString()),
    timestamps: records.map(each => Number(each.message.timestamp) - FIRST_TIMESTAMP_MS),
    header: records[7].message.headers.number.toString(),
  }
}

async function rebalance () {
  const topic = await newTopic('shared')
  const group = unique('group')
  const distinct = new Set()
  const first = await Member.start(topic, group)
  await waitSplit([first], [4])
  await send(topic, 'alone')
  const alone = await taken([first], distinct)
  const second = await Member.start(topic, group)
  await waitSplit([first, second], [2, 2])
  await send(topic, 'shared')
  const shared = await taken([first, second], distinct)
  await second.stop()
  await waitSplit([first], [4])
  await send(topic, 'again')
  const again = await taken([first], distinct)
  await first.stop()
  return { alone, shared, again, distinct: distinct.size }
}

async function resume () {
  const topic = await newTopic('resumed')
  const group = unique('resuming')
  await send(topic, 'record')
  const run = { autoCommit: false }
  const first = await Member.start(topic, group, { run })
  await waitUntil('40 records', () => first.taken.length >= 40)
  await first.consumer.commitOffsets(
    [0, 1, 2, 3].map(partition => ({ topic, partition, offset: '7', metadata: 'seven' })))
  await first.stop()
  const second = await Member.start(topic, group, { run })
  await waitUntil('12 records', () => second.taken.length >= 12)
  const offsets = [...new Set(second.taken.map(each => each.offset))].sort()
  await second.stop()
  const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
  const notes = [...new Set(committed.partitions.map(each => each.metadata))]
  return { offsets, notes }
}

async function groups () {
  const topic = await newTopic('described')
  const group = unique('group')
  const member = await Member.start(topic, group)
  await waitSplit([member], [4])
  const { groups: [live] } = await admin.describeGroups([group])
  const [{ memberAssignment }] = live.members
  const { assignment } = AssignerProtocol.MemberAssignment.decode(memberAssignment)
  await member.stop()
  await admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: '3' }] })
  const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
  const listed = async () => (await admin.listGroups()).groups.some(each => each.groupId === group)
  const before = await listed()
  await admin.deleteGroups([group])
  return {
    state: live.state,
    protocol: live.protocol,
    assigned: assignment[topic].length,
    offset: committed.partitions.find(each => each.partition === 0).offset,
    deleted: before && !(await listed()),
  }
}

async function idempotent () {
  const topic = await newTopic('idempotent')
  await withProducer({ idempotent: true, maxInFlightRequests: 1 }, async producer => {
    for (let number = 0; number < 20; number++) {
      const messages = Array.from({ length: 10 }, (_, each) => ({ partition: 0, value: String(number * 10 + each) }))
      await producer.send({ topic, messages })
    }
  })
  const records = await readAll(topic, 200)
  return {
    offsets: records.map(each => each.offset),
    values: records.map(each => Number(each.message.value.toString())),
  }
}

async function transactions () {
  const topic = await newTopic('transactions')
  const settings = { transactionalId: unique('writer'), idempotent: true, maxInFlightRequests: 1 }
  await withProducer(settings, async producer => {
    for (const outcome of ['kept', 'dropped', 'kept']) {
      const transaction = await producer.transaction()
      const messages = Array.from({ length: 8 }, (_, number) => ({ partition: number % PARTITIONS, value: outcome }))
      await transaction.send({ topic, messages })
      await (outcome === 'kept' ? transaction.commit() : transaction.abort())
    }
  })
  await send(topic, 'end')
  const counts = records => records.reduce((sums, each) => {
    const [word] = each.message.value.toString().split('-')
    return { ...sums, [word]: (sums[word] || 0) + 1 }
  }, {})
  return {
    committed: counts(await readAll(topic, 56)),
    uncommitted: counts(await readAll(topic, 64, { readUncommitted: true })),
  }
}

async function transactionalOffsets () {
  const topic = await newTopic('moved')
  const group = unique('mover')
  const settings = { transactionalId: unique('mover'), idempotent: true, maxInFlightRequests: 1 }
  await withProducer(settings, async producer => {
    for (const offset of ['4', '9']) {
      const transaction = await producer.transaction()
      const topics = [{ topic, partitions: [{ partition: 0, offset }] }]
      // The client does not repeat this by itself while the transaction before is being ended.
      await waitUntil('the end of the transaction before', () => (
        transaction.sendOffsets({ consumerGroupId: group, topics }).then(() => true, error => {
          if (error.type !== 'CONCURRENT_TRANSACTIONS') throw error
          return false
        })))
      await (offset === '4' ? transaction.commit() : transaction.abort())
    }
  })
  const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
  return { committed: committed.partitions.find(each => each.partition === 0).offset }
}

async function fencing () {
  const topic = await newTopic('fenced')
  const settings = { transactionalId: unique('fenced'), idempotent: true, maxInFlightRequests: 1 }
  return withProducer(settings, async old => {
    const late = await old.transaction()
    await late.send({ topic, messages: [{ partition: 0, value: 'of the old one' }] })
    return withProducer(settings, async fresh => {
      const transaction = await fresh.transaction()
      const refusal = await late.send({ topic, messages: [{ partition: 0, value: 'too late' }] })
        .then(() => 'none', error => error.type || error.cause?.type || error.name)
      await transaction.send({ topic, messages: [{ partition: 0, value: 'of the new one' }] })
      await transaction.commit()
      const records = await readAll(topic, 1)
      return { refusal, values: records.map(each => each.message.value.toString()) }
    })
  })
}

async function timestamps () {
  const topic = await newTopic('times')
  await withProducer({}, async producer => {
    for (let batch = 0; batch < 10; batch++) {
      const messages = Array.from({ length: 10 }, (_, each) => {
        const number = batch * 10 + each
        return { partition: 2, value: String(number), timestamp: String(FIRST_TIMESTAMP_MS + 10 * number) }
      })
      await producer.send({ topic, messages })
    }
  })
  const ends = (await admin.fetchTopicOffsets(topic)).find(each => each.partition === 2)
  const found = (await admin.fetchTopicOffsetsByTimestamp(topic, FIRST_TIMESTAMP_MS + 495))
    .find(each => each.partition === 2)
  const member = await Member.start(topic, unique('seeker'))
  await waitUntil('100 records', () => member.taken.length >= 100)
  member.taken = []
  member.consumer.seek({ topic, partition: 2, offset: '97' })
  await waitUntil('3 records', () => member.taken.length >= 3)
  const last = member.values()
  await member.stop()
  return { low: ends.low, high: ends.high, found: found.offset, last }
}

async function deleteRecords () {
  const topic = await newTopic('shortened')
  await send(topic, 'record')
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '6' }] })
  const records = await readAll(topic, 34)
  return { left: records.filter(each => each.partition === 0).map(each => each.offset) }
}

const scenarios = {
  topics,
  'compression-none': compression('none'),
  'compression-gzip': compression('gzip'),
  rebalance,
  resume,
  groups,
  idempotent,
  transactions,
  'transactional-offsets': transactionalOffsets,
  fencing,
  timestamps,
  'delete-records': deleteRecords,
}

async function main () {
  await admin.connect()
  await Promise.all(names.map(async scenario => {
    const line = await scenarios[scenario]().then(
      facts => ({ scenario, facts }),
      error => ({ scenario, error: `${error.stack}` }))
    console.log(JSON.stringify(line))
  }))
  await admin.disconnect()
}

main()
