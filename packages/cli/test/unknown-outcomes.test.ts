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

test.each([
  [401, 'unauthorized'],
  [403, 'insufficient-scope'],
  [429, 'rate-limit-exceeded'],
])(
  'a repeat with a key that gets %i decides nothing of an earlier run with it, and ends with 2',
  async (status, code) => {
    const refusal = problem(status, code, {}, { 'retry-after': '3600' })
    fake.script('', refusal, refusal)
    const repeat = [...pay, '--idempotency-key', 'report-7']
    const people = await ran(repeat, { env: env(), fetch: globalThis.fetch })
    expect(people).toMatchObject({ code: 2, stdout: '' })
    expect(people.stderr).toContain('An earlier run with this key may have been done.')
    expect(people.stderr).toContain('--idempotency-key report-7.')
    const first = await ran(pay, { env: env(), fetch: globalThis.fetch })
    expect([first.code, first.stderr], 'no earlier run has a new key').toEqual([
      1,
      expect.not.stringContaining('--idempotency-key'),
    ])
  },
)

test('a repeat with a key that is refused for what it contains ends with 1', async () => {
  fake.script('', problem(422, 'price-too-high'))
  const { code } = await ran([...pay, '--idempotency-key', 'report-7'], { env: env(), fetch: globalThis.fetch })
  expect(code).toBe(1)
})

test('a payment that was refused ends with 1, and without a key to repeat it with', async () => {
  fake.script('', problem(422, 'price-too-high'))
  const { code, stderr } = await ran(pay, { env: env(), fetch: globalThis.fetch })
  expect([code, stderr]).toEqual([1, expect.not.stringContaining('--idempotency-key')])
})

test('a payment whose seller gave no clear response ends with 2, and prints the key that returns it', async () => {
  const paid = { id: 'wtx_1', status: 'authorized', amount: '0.01', fromToken: 'USDC' }
  const unclear = { status: 201, body: { ...paid, outcome: 'unknown', response: null } }
  fake.script('', unclear)
  const { code, stderr } = await ran(pay, { env: env(), fetch: globalThis.fetch })
  const [key] = keysSent()
  expect([code, stderr]).toEqual([
    2,
    'wtx_1: 0.01 USDC, authorized. The seller may take it.\n' +
      `To look again, run the same command within 24 hours with --idempotency-key ${key}. With another key it pays again.\n`,
  ])
  fake.script('', unclear)
  const again = await ran([...pay, '--idempotency-key', 'report-7', '--format', 'json'], {
    env: env(),
    fetch: globalThis.fetch,
  })
  expect([again.code, JSON.parse(again.stdout)]).toMatchObject([
    2,
    { id: 'wtx_1', idempotencyKey: 'report-7', advice: expect.stringContaining('--idempotency-key report-7') },
  ])
})

const waiting = {
  status: 202,
  body: {
    ...{ id: 'wtx_1', status: 'pending', amount: '0.01', fromToken: 'USDC', outcome: null, response: null },
    approval: { id: 'apr_1', status: 'waiting' },
  },
}

test('a payment that waits for an approval ends with 3, and prints what finishes it, the same each time', async () => {
  fake.script('', waiting, waiting)
  const once = [...pay, '--idempotency-key', 'report-7']
  const { code, stdout } = await ran(once, { env: env(), fetch: globalThis.fetch })
  const advice =
    'After the approval, run the same command within an hour with --approved-payment-id wtx_1 --idempotency-key approved-wtx_1. ' +
    'Until then, run it only with --idempotency-key report-7: with another key it is another payment.'
  expect([code, stdout]).toEqual([3, `wtx_1: 0.01 USDC, pending\nWaiting for the approval apr_1.\n${advice}\n`])
  const json = await ran([...once, '--format', 'json'], { env: env(), fetch: globalThis.fetch })
  expect([json.code, JSON.parse(json.stdout)]).toEqual([3, { ...waiting.body, idempotencyKey: 'report-7', advice }])
})

test('the repeat of a payment that was approved meanwhile ends with 3 too, and prints what finishes it', async () => {
  fake.script('', { status: 201, body: { ...waiting.body, approval: { id: 'apr_1', status: 'granted' } } })
  const { code, stdout } = await ran([...pay, '--idempotency-key', 'report-7'], { env: env(), fetch: globalThis.fetch })
  const advice =
    'The payment is approved. Run the same command within an hour of the approval with --approved-payment-id wtx_1 --idempotency-key approved-wtx_1.'
  expect([code, stdout]).toEqual([3, `wtx_1: 0.01 USDC, pending\n${advice}\n`])
})

test('a payment that was approved is finished', async () => {
  const paid = { ...waiting.body, outcome: 'paid', response: { status: 200, body: 'goods' }, approval: null }
  fake.script('', { status: 201, body: paid })
  const finishing = [...pay, '--approved-payment-id', 'wtx_1', '--idempotency-key', 'approved-wtx_1']
  expect(await ran(finishing, { env: env(), fetch: globalThis.fetch })).toMatchObject({ code: 0 })
  expect(fake.seen[0]?.body).toMatchObject({ approvedPaymentId: 'wtx_1' })
})

test('every command whose request waits for an approval ends with 3', async () => {
  fake.script('', waiting)
  const { code, stdout } = await ran([...transfer, ...others], { env: env(), fetch: globalThis.fetch })
  expect([code, stdout]).toEqual([3, expect.stringContaining('apr_1')])
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
