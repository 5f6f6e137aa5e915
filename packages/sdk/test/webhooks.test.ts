import { createServer } from 'node:http'
import { expect, expectTypeOf, test } from 'vitest'
import openApi from '../../../openapi.json' with { type: 'json' }
import {
  testHeaders,
  unwrap,
  type WebhookEvent,
  type WebhookPayloads,
  WebhookVerificationError,
  webhookEventTypes,
} from '../src/webhooks/index.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const older = 'whsec_AwoRGB8mLTQ7QklQV15lbHN6gYiPlp2kq7K5wMfO1dw='
const now = new Date('2026-11-21T12:00:00.000Z')
const at = { now }

const outcome = {
  paymentId: 'pay_1',
  walletId: null,
  amount: '0.01',
  token: 'USDC',
  chain: 'base',
  payer: '0x00000000000000000000000000000000000000aa',
}

const ofTransfer = { transactionId: 'wtx_1', walletId: 'mwt_1', route: 'direct' }

const ofApproval = {
  approvalId: 'apr_1',
  kind: 'transfer',
  transactionId: 'wtx_1',
  withdrawalId: null,
  walletId: 'mwt_1',
  amount: '50',
  token: 'USDC',
  chain: 'base',
  to: '0x00000000000000000000000000000000000000aa',
  note: null,
  requestedBy: 'key_1',
}

/** One payload of every event type. */
const samples: WebhookPayloads = {
  'payment.received': {
    ...outcome,
    protocol: 'x402',
    txHash: null,
    route: 'https://api.example.com/weather',
    vaultId: null,
    receivedAt: now.toISOString(),
  },
  'payment.settled': { ...outcome, txHash: '0xab', settledAt: now.toISOString() },
  'payment.settlement_failed': { ...outcome, reason: 'reverted', failedAt: now.toISOString() },
  'payment.refunded': {
    paymentId: 'pay_1',
    refundId: 'rfd_1',
    transferId: 'wtx_1',
    amount: '1',
    totalRefunded: '1.5',
    token: 'USDC',
    chain: 'base',
    payer: '0x1',
    reason: null,
    txHash: '0xab',
    refundedAt: now.toISOString(),
  },
  'vault.sealed': { vaultId: 'vlt_1', summary: '', sealedAt: now.toISOString(), manifestHash: 'ab' },
  'vault.expiring': { vaultId: 'vlt_1', expiresAt: now.toISOString() },
  'vault.expired': { vaultId: 'vlt_1', expiredAt: now.toISOString() },
  'vault.extended': { vaultId: 'vlt_1', expiresAt: now.toISOString() },
  'vault.persisted': { vaultId: 'vlt_1', persistedAt: now.toISOString() },
  'deposit.success': {
    walletId: 'byw_1',
    txHash: '0xab',
    logIndex: 0,
    amount: '1.5',
    rawAmount: '1500000',
    tokenSymbol: 'USDC',
    chain: 'base',
    from: '0x01',
    to: '0x02',
    blockNumber: 12,
    confirmedAt: now.toISOString(),
  },
  'wallet.flagged': {
    walletId: 'byw_1',
    address: '0x01',
    transactionId: null,
    reason: 'listed',
    flaggedAt: now.toISOString(),
  },
  'wallet.cleared': { walletId: 'mwt_1', address: '0x01', transactionId: 'wtx_1', clearedAt: now.toISOString() },
  'transfer.completed': {
    ...ofTransfer,
    fromChain: 'base',
    toChain: 'tempo',
    amount: '1',
    fromToken: 'USDC',
    toToken: 'USDC_E',
    toAmount: '0.99',
    receivedToken: null,
    destinationTxHash: '0xcd',
    txHash: '0xab',
    confirmedAt: now.toISOString(),
  },
  'transfer.failed': { ...ofTransfer, reason: 'no-route', refundTxHash: null, refundedAt: null },
  'transfer.refund_overdue': {
    ...{
      transactionId: 'wtx_1',
      walletId: 'mwt_1',
      route: 'partner-bridge',
      amount: '50',
      token: 'USDC',
      chain: 'base',
    },
    txHash: '0x1',
    failingSince: '2026-11-19T00:00:00.000Z',
  },
  'transfer.delivery_overdue': {
    ...{
      transactionId: 'wtx_1',
      walletId: 'mwt_1',
      route: 'partner-bridge',
      amount: '50',
      token: 'USDC',
      chain: 'base',
    },
    txHash: '0x1',
    leftAt: '2026-11-21T00:00:00.000Z',
  },
  'transfer.refunded': {
    ...{
      transactionId: 'wtx_1',
      walletId: 'mwt_1',
      route: 'partner-bridge',
      amount: '50',
      token: 'USDC',
      chain: 'base',
    },
    refundTxHash: null,
    refundedAt: '2026-11-23T00:00:00.000Z',
  },
  'approval.requested': {
    ...ofApproval,
    approvalAbove: '20',
    expiresAt: '2026-11-24T00:00:00.000Z',
    requestedAt: '2026-11-23T00:00:00.000Z',
  },
  'approval.granted': { ...ofApproval, decidedBy: 'acc_1', grantedAt: '2026-11-23T00:00:00.000Z' },
  'approval.refused': {
    ...ofApproval,
    status: 'expired',
    decidedBy: null,
    reason: null,
    refusedAt: '2026-11-23T00:00:00.000Z',
  },
  'withdrawal.updated': {
    withdrawalId: 'wdr_1',
    walletId: 'mwt_1',
    status: 'conversion_complete',
    refund: null,
    updatedAt: '2026-11-23T00:00:00.000Z',
  },
  'withdrawal.completed': {
    withdrawalId: 'wdr_1',
    walletId: 'mwt_1',
    amount: '50',
    token: 'USDC',
    reference: null,
    completedAt: now.toISOString(),
  },
  'withdrawal.failed': { withdrawalId: 'wdr_1', reason: 'refused', failedAt: now.toISOString() },
  'usage.threshold': {
    kind: 'payments',
    percent: 80,
    used: 80,
    limit: 100,
    month: '2026-11',
    reachedAt: now.toISOString(),
  },
  'member.invited': { accountId: 'acc_1', email: 'a@example.com', role: 'member', invitedAt: now.toISOString() },
  'webhook.disabled': { webhookId: 'wh_1', disabledAt: now.toISOString() },
  'webhook.test': { webhookId: 'wh_1' },
}

function bodyOf(type: string, payload: unknown): string {
  return JSON.stringify({ eventId: 'evt_1', type, payload })
}

const body = bodyOf('webhook.test', samples['webhook.test'])

function refusalOf(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error instanceof WebhookVerificationError ? error.reason : error
  }
}

function unwrapText(text: string | Uint8Array): WebhookEvent {
  return unwrap(text, { ...testHeaders(text, secret, at) }, secret, at)
}

test.each(Object.entries(samples))(
  'an event of type %s comes out as it was sent, with what is new in it',
  (type, payload) => {
    const sent = { ...payload, cameLater: { to: 'stay' } }
    expect(unwrapText(bodyOf(type, sent))).toEqual({ eventId: 'evt_1', type, payload: sent })
  },
)

test.each(Object.entries(samples))(
  'a payload of %s that lacks a member, or has it of another kind, is refused',
  (type, payload) => {
    for (const member of Object.keys(payload)) {
      for (const wrong of [undefined, 1.5, true, {}, ['x']])
        expect(refusalOf(() => unwrapText(bodyOf(type, { ...payload, [member]: wrong })))).toBe('event-malformed')
    }
  },
)

test('every type has a sample here', () => {
  expect(Object.keys(samples).sort()).toEqual([...webhookEventTypes].sort())
})

test('the type of an event determines the type of its payload', () => {
  const event = unwrapText(bodyOf('vault.sealed', samples['vault.sealed']))
  expect(event.type === 'vault.sealed' && event.payload.manifestHash).toBe('ab')
  if (event.type === 'deposit.success') expectTypeOf(event.payload.rawAmount).toEqualTypeOf<string>()
  if (event.type === 'unrecognized') expectTypeOf(event.sentType).toEqualTypeOf<string>()
})

test.each(['later.type', 'constructor', '__proto__', 'unrecognized'])(
  'an event of the unknown type %s is kept whole',
  (type) => {
    expect(unwrapText(bodyOf(type, { a: 1 }))).toEqual({
      eventId: 'evt_1',
      type: 'unrecognized',
      sentType: type,
      payload: { a: 1 },
    })
  },
)

test('text and bytes, Fetch headers and Node headers in any case are the same delivery', () => {
  const headers = { ...testHeaders(body, secret, at) }
  const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
  const listed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  for (const received of [headers, shouted, listed, new Headers(headers), { ...headers, get: 'x', other: undefined }])
    for (const raw of [body, Buffer.from(body), new TextEncoder().encode(body)])
      expect(unwrap(raw, received, secret, at)).toMatchObject({ type: 'webhook.test' })
})

test("the document's own headers are enough, and are judged where the others are missing", () => {
  const { 'x-service-signature': signature, 'x-service-timestamp': timestamp } = testHeaders(body, [secret, older], at)
  const headers = { 'x-service-signature': signature, 'x-service-timestamp': timestamp }
  for (const known of [secret, older, [older, secret]]) expect(unwrap(body, headers, known, at).eventId).toBe('evt_1')
  expect(refusalOf(() => unwrap(`${body} `, headers, secret, at))).toBe('signature-mismatch')
  expect(refusalOf(() => unwrap(body, { 'x-service-signature': signature }, secret, at))).toBe('header-missing')
  expect(refusalOf(() => unwrap(body, { 'x-service-timestamp': timestamp }, secret, at))).toBe('header-missing')
})

test('good headers of one kind do not save bad ones of the other', () => {
  const headers = { ...testHeaders(body, secret, at), 'webhook-signature': 'v1,AAAA' }
  expect(refusalOf(() => unwrap(body, headers, secret, at))).toBe('signature-mismatch')
})

test('a header that is missing or occurs twice is refused', () => {
  const headers = { ...testHeaders(body, secret, at) }
  for (const name of ['webhook-id', 'webhook-timestamp']) {
    expect(refusalOf(() => unwrap(body, { ...headers, [name]: undefined }, secret, at))).toBe('header-missing')
    expect(refusalOf(() => unwrap(body, { ...headers, [name]: ['1', '1'] }, secret, at))).toBe('header-repeated')
    expect(refusalOf(() => unwrap(body, { ...headers, [name.toUpperCase()]: '1' }, secret, at))).toBe('header-repeated')
  }
  expect(refusalOf(() => unwrap(body, {}, secret, at))).toBe('header-missing')
  expect(() => unwrap(body, {}, secret, at)).toThrow('There is no webhook-signature.')
  expect(() => unwrap(body, {}, secret, at)).toThrow(expect.objectContaining({ status: 400 }))
  expect(refusalOf(() => unwrap(body, new Headers(), secret, at))).toBe('header-missing')
})

test('what is signed and is no event is refused as that', () => {
  for (const text of ['', '{', 'null ,', '\ufeff', '{"eventId":"evt_1",}'])
    expect(
      refusalOf(() => unwrapText(text)),
      text,
    ).toBe('body-malformed')
  expect(refusalOf(() => unwrapText(new Uint8Array([0x22, 0xff, 0x22])))).toBe('body-malformed')
  for (const text of [
    'null',
    '[]',
    '"x"',
    '{}',
    bodyOf('', {}),
    bodyOf('a.b', null),
    bodyOf('a.b', []),
    '{"eventId":1}',
  ])
    expect(
      refusalOf(() => unwrapText(text)),
      text,
    ).toBe('event-malformed')
})

test('a fault of the receiving program is not reported as a fault of the delivery', () => {
  const headers = { ...testHeaders(body, secret, at) }
  expect(() => unwrap(body, headers, 'whsec_short', at)).toThrow(RangeError)
  expect(() => unwrap(body, headers, [], at)).toThrow(RangeError)
  expect(() => unwrap(body, headers, secret, { now: new Date(Number.NaN) })).toThrow(RangeError)
  expect(() => unwrap(body, headers, secret, { now, toleranceSeconds: Number.NaN })).toThrow(RangeError)
  expect(() => unwrap(JSON.parse(body), headers, secret, at)).toThrow(TypeError)
})

test('no refusal shows the secret or the body', () => {
  const messages = [`${body} `, bodyOf('vault.sealed', { private: 'words' })].map((text) => {
    try {
      return String(unwrap(text, { ...testHeaders(text === `${body} ` ? body : text, secret, at) }, secret, at))
    } catch (error) {
      return String(error)
    }
  })
  for (const message of messages) expect(message).not.toMatch(/MfKQ|words|\[object/)
  expect(messages).toHaveLength(2)
})

test('a delivery is judged by the clock of the machine when no time is given', () => {
  expect(unwrap(body, { ...testHeaders(body, secret) }, secret).eventId).toBe('evt_1')
  expect(refusalOf(() => unwrap(body, { ...testHeaders(body, secret, at) }, secret))).toMatch(/^timestamp-too-/)
})

test('a receiver of nothing but Node takes a delivery that came over HTTP', async () => {
  const outcomes: unknown[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    outcomes.push(refusalOf(() => unwrap(Buffer.concat(chunks), request.headers, secret)))
    response.writeHead(200).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hook`
  const headers = { ...testHeaders(body, secret) }
  await fetch(url, { method: 'POST', body, headers })
  await fetch(url, { method: 'POST', body: body.replace('wh_1', 'wh_2'), headers })
  await new Promise((resolve) => server.close(resolve))
  expect(outcomes).toMatchObject([{ type: 'webhook.test' }, 'signature-mismatch'])
})

test('the example of the event stream in openapi.json is signed with the secret of its own example', () => {
  const { '/events/stream': stream, '/events/listener': listener } = openApi.paths
  const text = stream.get.responses['200'].content['text/event-stream'].examples.recorded.value
  const { body, headers, eventId } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '')
  const exampleSecret = listener.post.responses['200'].content['application/json'].examples.recorded.value.secret
  const at = { now: new Date(Number(headers['webhook-timestamp']) * 1000) }
  const { 'webhook-signature': _, ...ownHeaders } = headers
  for (const given of [headers, ownHeaders]) expect(unwrap(body, given, exampleSecret, at).eventId).toBe(eventId)
})
