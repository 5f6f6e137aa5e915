import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { composeApiKey } from '@purser/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakePurser, problem, startFakePurser } from '../../sdk/test/fake-purser.ts'
import { bareEnv, program, ran } from './stage.ts'

let fake: FakePurser
beforeEach(async () => {
  fake = await startFakePurser()
})
afterEach(() => fake.stop())

const pay = ['pay', 'https://shop.test/report', '--wallet', 'mwt_1', '--max', '0.05']
const transfer = ['transfers', 'create', '--input', '{"amount":"1"}', '--from-wallet-id', 'mwt_1']
const others = ['--to-address', '0x1', '--to-chain', 'base', '--to-token', 'USDC']
const env = () => ({ PURSER_API_KEY: composeApiKey('test', new Uint8Array(32)), PURSER_BASE_URL: fake.baseUrl })
const keysSent = () => [...new Set(fake.seen.map(({ headers }) => headers['idempotency-key']))]

const stillRuns = problem(409, 'idempotency-in-progress', {}, { 'retry-after': '0' })
const notOurs = { status: 404, text: '<html>' }

test.each([
  ['a payment that still runs', pay, stillRuns, 'idempotency-in-progress'],
  ['a transfer that still runs', [...transfer, ...others], stillRuns, 'idempotency-in-progress'],
  ['a payment that a proxy answered', pay, notOurs, 'http-404'],
  ['a transfer that a proxy answered', [...transfer, ...others], notOurs, 'http-404'],
])('%s ends with 2, and prints the key to repeat it with', async (_, args, doing, code) => {
  fake.script('', doing)
  const { fetch } = globalThis
  const people = await ran(args, { env: env(), fetch })
  const [key, ...more] = keysSent()
  expect(more).toEqual([])
  expect(people).toMatchObject({ code: 2, stdout: '' })
  expect(people.stderr).toContain(`run the same command within 24 hours with --idempotency-key ${key}.`)

  fake.seen.length = 0
  const repeated = await ran([...args, '--idempotency-key', `${key}`, '--format', 'json'], { env: env(), fetch })
  expect(keysSent()).toEqual([key])
  expect(repeated.code).toBe(2)
  expect(JSON.parse(repeated.stdout)).toMatchObject({
    error: { code, idempotencyKey: key, advice: expect.stringContaining(`--idempotency-key ${key}`) },
  })
})

test('a payment that was refused ends with 1, and without a key to repeat it with', async () => {
  fake.script('', problem(422, 'price-too-high'))
  const { code, stderr } = await ran(pay, { env: env(), fetch: globalThis.fetch })
  expect([code, stderr]).toEqual([1, expect.not.stringContaining('--idempotency-key')])
})

test('a payment whose seller gave no clear response ends with 2', async () => {
  const paid = { id: 'wtx_1', status: 'authorized', amount: '0.01', fromToken: 'USDC' }
  fake.script('', { status: 201, body: { ...paid, outcome: 'unknown', response: null } })
  const { code, stderr } = await ran(pay, { env: env(), fetch: globalThis.fetch })
  expect([code, stderr]).toEqual([
    2,
    'wtx_1: 0.01 USDC, authorized. The seller may take it: another purser pay is another payment.\n',
  ])
})

test('Ctrl-C during a payment prints the key to repeat it with', async () => {
  fake.script('', 'hang')
  const child = spawn(process.execPath, [program, ...pay], { env: { ...bareEnv(), ...env() } })
  const errors: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  const ended = once(child, 'close')
  await expect.poll(() => fake.seen.length, { timeout: 20_000 }).toBe(1)
  child.kill('SIGINT')
  expect((await ended)[0]).toBe(2)
  const stderr = Buffer.concat(errors).toString('utf8')
  expect(stderr).toMatch(/^Interrupted\n/)
  expect(stderr).toContain(`--idempotency-key ${keysSent()[0]}.`)
})
