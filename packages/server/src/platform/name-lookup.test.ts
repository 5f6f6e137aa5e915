import { createSocket } from 'node:dgram'
import { expect, onTestFinished, test } from 'vitest'
import { createPublicLookup, systemLookup } from './guarded-fetch.ts'

type Records = Readonly<Record<string, Readonly<Partial<Record<'a' | 'aaaa', readonly string[] | 'servfail'>>>>>

/** A local name server with these records. Source: RFC 1035 section 4. */
async function aNameServer(records: Records): Promise<{ address: string; requested: string[] }> {
  const requested: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const { name, type, end } = questionOf(query)
    requested.push(`${type} ${name}`)
    const answers = records[name]?.[type]
    const addresses = Array.isArray(answers) ? answers : []
    const code = answers === 'servfail' ? 2 : records[name] === undefined ? 3 : 0
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180 | code, 2)
    head.writeUInt16BE(addresses.length, 6)
    head.fill(0, 8, 12)
    const rows = addresses.map((address: string) => answerOf(type, address))
    socket.send(Buffer.concat([head, query.subarray(12, end), ...rows]), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  onTestFinished(() => void socket.close())
  return { address: `127.0.0.1:${socket.address().port}`, requested }
}

function questionOf(query: Buffer): { name: string; type: 'a' | 'aaaa'; end: number } {
  const labels: string[] = []
  let at = 12
  for (let size = query.readUInt8(at); size > 0; size = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + size))
    at += size + 1
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1) === 28 ? 'aaaa' : 'a', end: at + 5 }
}

function answerOf(type: 'a' | 'aaaa', address: string): Buffer {
  const data = Buffer.from(type === 'a' ? address.split('.').map(Number) : Buffer.from(address, 'hex'))
  const head = Buffer.from([0xc0, 12, 0, type === 'a' ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, data.length])
  return Buffer.concat([head, data])
}

const v6 = '20010db8000000000000000000000001'

test('the public look-up returns every address of both kinds, IPv4 first', async () => {
  const { address } = await aNameServer({ 'hooks.example.test': { a: ['192.0.2.7', '127.0.0.1'], aaaa: [v6] } })
  expect(await createPublicLookup([address])('hooks.example.test')).toEqual(['192.0.2.7', '127.0.0.1', '2001:db8::1'])
})

test('the public look-up accepts one kind of address if there is no other', async () => {
  const { address } = await aNameServer({
    'four.example.test': { a: ['192.0.2.7'], aaaa: [] },
    'broken.example.test': { a: 'servfail', aaaa: [v6] },
  })
  const lookup = createPublicLookup([address])
  expect(await lookup('four.example.test')).toEqual(['192.0.2.7'])
  expect(await lookup('broken.example.test')).toEqual(['2001:db8::1'])
})

test('the public look-up queries each time, and finds nothing for an unknown name', async () => {
  const { address, requested } = await aNameServer({ 'hooks.example.test': { a: ['192.0.2.7'] } })
  const lookup = createPublicLookup([address])
  expect(await lookup('nowhere.example.test')).toEqual([])
  await lookup('hooks.example.test')
  const before = requested.length
  await lookup('hooks.example.test')
  expect(requested.length).toBeGreaterThan(before)
})

test('the public look-up reads no hosts file and tries no search domain', async () => {
  const { address, requested } = await aNameServer({ postgres: {} })
  const lookup = createPublicLookup([address])
  expect(await lookup('postgres')).toEqual([])
  expect(new Set(requested)).toEqual(new Set(['a postgres', 'aaaa postgres']))
})

test("the system's look-up resolves this machine", async () => {
  expect(await systemLookup('localhost')).toContain('127.0.0.1')
})
