import { composeApiKey } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakePurser, startFakePurser } from '../../sdk/test/fake-purser.ts'
import { type Agent, anAgent } from './stage.ts'

let fake: FakePurser
beforeAll(async () => {
  fake = await startFakePurser()
})
afterAll(() => fake?.stop())

const body = {
  fromWalletId: 'mwt_1',
  fromToken: 'USDC',
  toAddress: '0x1',
  toChain: 'base',
  toToken: 'USDC',
  amount: '1',
}
/** A transfer as the service answers it. */
const sent = {
  ...{
    id: 'wtx_1',
    fromWalletId: 'mwt_1',
    toAddress: '0x1',
    fromChain: 'base',
    toChain: 'base',
    fromToken: 'USDC',
    toToken: 'USDC',
  },
  ...{
    amount: '1',
    toAmount: '1',
    feeAmount: '0',
    feeToken: 'ETH',
    route: 'direct',
    routeReason: 'One chain.',
    status: 'pending',
  },
  ...{
    txHash: null,
    reason: null,
    receivedToken: null,
    destinationTxHash: null,
    refundTxHash: null,
    refundedAt: null,
    minToAmount: '1',
    reference: null,
    resource: null,
    metadata: {},
    approval: null,
    confirmedAt: null,
  },
  createdAt: '2026-11-22T10:00:00.000Z',
}

const problem = (status: number, code: string) => ({
  status,
  body: { type: `http://purser.test/problems/${code}`, title: 'No', status, detail: 'No.' },
  headers: { 'retry-after': '120' },
})

function agent(): Promise<Agent> {
  const env = { PURSER_API_KEY: composeApiKey('test', new Uint8Array(32)), PURSER_BASE_URL: fake.baseUrl }
  return anAgent(env)
}

/** The Idempotency-Keys that the service was sent for transfers, one for each that is not the one before. */
function keysSent(): readonly unknown[] {
  return [...new Set(fake.calls('/wallet-infra/transfer').map(({ headers }) => headers['idempotency-key']))]
}

test.each([
  ['too many requests', problem(429, 'rate-limit-exceeded')],
  ['a key that was revoked meanwhile', problem(401, 'unauthorized')],
  ['the first one is still at work', problem(409, 'idempotency-in-progress')],
  ['the service is in trouble', problem(503, 'chain-unavailable')],
  ['somebody on the way refused', { status: 404, text: '<html>' }],
])(
  'a transfer whose first answer was lost keeps its key, when the second attempt is answered: %s',
  async (_, response) => {
    const { call } = await agent()
    fake.seen.length = 0
    fake.script('/wallet-infra/transfer', 'reset', response)
    const lost = await call('transfers_create', body)
    expect(lost).toMatchObject({ isError: true, read: { advice: expect.stringContaining('may or may not') } })
    fake.script('/wallet-infra/transfer', { status: 201, body: sent })
    const again = await call('transfers_create', body)
    expect([keysSent(), again.structured.idempotencyKey]).toEqual([
      [lost.read.idempotencyKey],
      lost.read.idempotencyKey,
    ])
  },
)

test('a transfer that was refused for what it is has a new key when it is requested again', async () => {
  const { call } = await agent()
  fake.seen.length = 0
  fake.script('/wallet-infra/transfer', problem(422, 'insufficient-balance'))
  const refused = await call('transfers_create', body)
  expect(refused.read).not.toHaveProperty('advice')
  fake.script('/wallet-infra/transfer', { status: 201, body: sent })
  await call('transfers_create', body)
  expect(keysSent()).toHaveLength(2)
})

test.each([
  ['a key without the scope', problem(403, 'scope-not-allowed')],
  ['a key that was revoked', problem(401, 'unauthorized')],
  ['too many requests', problem(429, 'rate-limit-exceeded')],
])('a plain refusal decides its call, so that no number of them fills the open calls: %s', async (_, response) => {
  const { call } = await agent()
  fake.seen.length = 0
  fake.script('/wallet-infra/transfer', ...Array.from({ length: 201 }, () => response))
  for (let number = 0; number < 200; number++) {
    const refused = await call('transfers_create', { ...body, reference: `${number}` })
    expect(refused.read).not.toHaveProperty('advice')
  }
  const last = await call('transfers_create', body)
  expect(last.read).toMatchObject({ status: response.status })
  expect(keysSent()).toHaveLength(201)
})

test('a refusal before the key is looked up decides nothing about an earlier call with the key', async () => {
  const { call } = await agent()
  fake.seen.length = 0
  const denied = problem(403, 'scope-not-allowed')
  fake.script('/wallet-infra/transfer', 'reset', problem(503, 'chain-unavailable'), denied)
  const { idempotencyKey } = (await call('transfers_create', body)).read
  const repeated = await call('transfers_create', body)
  expect(repeated.read).toMatchObject({ status: 403, idempotencyKey, advice: expect.stringContaining('earlier call') })
  fake.script('/wallet-infra/transfer', denied)
  const own = await call('transfers_create', { ...body, idempotencyKey })
  expect(own.read).toMatchObject({ status: 403, idempotencyKey, advice: expect.stringContaining('earlier call') })
  fake.script('/wallet-infra/transfer', { status: 201, body: sent })
  expect((await call('transfers_create', body)).structured).toMatchObject({ idempotencyKey })
  expect(keysSent()).toEqual([idempotencyKey])
})

test('a state that is newer than this package reaches the agent', async () => {
  const { call } = await agent()
  fake.script('/wallet-infra/transfer', { status: 201, body: { ...sent, status: 'teleported', more: 1 } })
  expect((await call('transfers_create', body)).structured).toMatchObject({ status: 'teleported', more: 1 })
})
