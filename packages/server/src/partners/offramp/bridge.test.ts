import { PassThrough } from 'node:stream'
import { inspect } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aPartner, type PartnerDouble, type PartnerResponse } from '../../../test/partner-double.ts'
import { processorMs } from '../../../test/processor-time.ts'
import { createLog } from '../../platform/log.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { bridgeStates, createBridge } from './bridge.ts'
import type { NewPayout, NewPayoutAccount, OffRamp } from './port.ts'
import published from './vectors/bridge-transfer.json' with { type: 'json' }

let outbound: Outbound
let double: PartnerDouble
let bridge: OffRamp
let reported: PartnerResponse
let lines: string[]

beforeEach(async () => {
  outbound = createOutbound()
  double = await aPartner(() => reported)
  lines = []
  const destination = new PassThrough()
  destination.on('data', (line: Buffer) => lines.push(line.toString('utf8')))
  const log = createLog({ level: 'trace', destination })
  bridge = createBridge({ outbound, log }, { baseUrl: double.url, apiKey: 'sk-bridge', timeoutMs: 1_000 })
})
afterEach(async () => {
  await outbound.close()
  await double.stop()
})

const payout: NewPayout = {
  key: 'wdr_01h455vb4pex5vsknk084sn02q',
  customerId: 'cust_alice',
  requestedAt: new Date('2026-11-22T00:00:00Z'),
  accountId: 'external_account_123',
  currency: 'USD',
  network: 'ethereum',
  token: { symbol: 'USDC', address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', decimals: 6 },
  rawAmount: 10_000_000n,
  fromAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  reference: 'INV 7',
}
const owner = { kind: 'business', name: 'Acme Inc' } as const
const address = { street: '923 Folsom Street', city: 'San Francisco', state: 'CA', postalCode: '94107', country: 'USA' }
const account: NewPayoutAccount = {
  key: 'bac_01h455vb4pex5vsknk084sn02q',
  customerId: 'cust_alice',
  owner,
  accountName: 'Acme',
  destination: { currency: 'GBP', sortCode: '202959', accountNumber: '63748472' },
}

const transferIn = (state: string, changes: object = {}): PartnerResponse => {
  return { json: { ...published.transfer, state, ...changes } }
}

test('the published payout example is parsed into its deposit and receipt', async () => {
  reported = { status: 201, json: published.transfer }
  expect(await bridge.createPayout(payout)).toEqual({
    ok: true,
    value: {
      payoutId: 'transfer_123',
      state: 'pending_conversion',
      partnerState: 'awaiting_funds',
      awaitsDeposit: true,
      deposit: { address: '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d', rawAmount: 10_000_000n },
      receipt: { initialAmount: '10', feeAmount: '0.5', finalAmount: '9.5' },
    },
  })
  expect(double.requested).toEqual([
    expect.objectContaining({
      method: 'POST',
      path: '/transfers',
      headers: expect.objectContaining({
        'api-key': 'sk-bridge',
        'idempotency-key': payout.key,
        'content-type': 'application/json',
      }),
      body: {
        on_behalf_of: 'cust_alice',
        client_reference_id: payout.key,
        amount: '10',
        source: { payment_rail: 'ethereum', currency: 'usdc', from_address: payout.fromAddress },
        destination: {
          payment_rail: 'ach',
          currency: 'usd',
          external_account_id: 'external_account_123',
          ach_reference: 'INV 7',
        },
      },
    }),
  ])
})

test('a repeated payout is a byte-identical request', async () => {
  reported = { json: published.transfer }
  await bridge.createPayout(payout)
  await bridge.createPayout({ ...payout })
  expect(double.requested[1]).toEqual(double.requested[0])
})

test.each([
  ['awaiting_funds', 'pending_conversion', undefined],
  ['in_review', 'pending_conversion', undefined],
  ['funds_received', 'pending_conversion', undefined],
  ['payment_submitted', 'conversion_complete', undefined],
  ['payment_processed', 'completed', undefined],
  ['undeliverable', 'failed', 'expected'],
  ['returned', 'failed', 'expected'],
  ['missing_return_policy', 'failed', 'held'],
  ['refunded', 'failed', 'done'],
  ['canceled', 'failed', 'none'],
  ['error', 'failed', 'held'],
] as const)('Bridge’s state %s is the withdrawal status %s', async (state, expected, refund) => {
  expect(bridgeStates).toContain(state)
  reported = transferIn(state, { id: 'transfer/123' })
  const read = await bridge.readPayout('transfer/123', payout)
  expect([read?.state, read?.partnerState, read?.failure?.refund]).toEqual([expected, state, refund])
  expect(read?.awaitsDeposit).toBe(state === 'awaiting_funds')
  expect(double.requested[0]).toMatchObject({ method: 'GET', path: '/transfers/transfer%2F123' })
  expect(double.requested[0]?.headers['idempotency-key']).toBeUndefined()
})

test('every documented state is mapped', () => {
  expect(bridgeStates).toHaveLength(11)
})

test('an undocumented state stays pending and is logged', async () => {
  reported = transferIn('funds_teleported')
  expect((await bridge.readPayout('transfer_123', payout))?.state).toBe('pending_conversion')
  expect(lines.join('')).toContain('funds_teleported')
})

test.each([
  ['an invalid address', { to_address: '0xc0ffee' }],
  ['no address', { to_address: undefined }],
  ['a mistyped address', { to_address: '0x28B5a0e9C621a5BadaA536219b3a228C8168cf5d' }],
  ['more than the agreed amount', { amount: '11.0' }],
  ['less than the agreed amount', { amount: '9.999999' }],
  ['another token', { currency: 'usdt' }],
  ['another chain', { payment_rail: 'polygon' }],
])('a deposit to %s is never requested from a wallet', async (_, changes) => {
  const instructions = { ...published.transfer.source_deposit_instructions, ...changes }
  reported = transferIn('awaiting_funds', { source_deposit_instructions: instructions })
  await expect(bridge.createPayout(payout)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test.each([
  ['customer', { on_behalf_of: 'cust_bob' }],
  ['reference', { client_reference_id: 'wdr_01h455vb4pex5vsknk084sn02r' }],
  ['bank account', { destination: { ...published.transfer.destination, external_account_id: 'external_account_124' } }],
  ['currency', { destination: { ...published.transfer.destination, currency: 'eur' } }],
  ['source', { source: { ...published.transfer.source, from_address: payout.fromAddress.replace(/.$/, 'f') } }],
])('the transfer of another %s is no answer to a request, though its deposit fits', async (_, changes) => {
  reported = transferIn('awaiting_funds', changes)
  await expect(bridge.createPayout(payout)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test('a payout whose deposit has changed is read without a deposit', async () => {
  const instructions = { ...published.transfer.source_deposit_instructions, amount: '11.0' }
  reported = transferIn('awaiting_funds', { source_deposit_instructions: instructions })
  const read = await bridge.readPayout('transfer_123', payout)
  expect([read?.awaitsDeposit, read?.deposit]).toEqual([true, undefined])
})

test.each([
  ['numbers', { initial_amount: 10, developer_fee: 0.5, final_amount: 9.5, exchange_rate: 1 }, undefined],
  [
    'exponents',
    { initial_amount: '10.0', developer_fee: '5e-1', final_amount: '1e3', exchange_rate: '1E0' },
    { initialAmount: '10' },
  ],
  [
    'signs, separators, other digits and NULs',
    {
      initial_amount: '10',
      developer_fee: '-0.5',
      exchange_fee: '1,000',
      final_amount: '٩.٥',
      exchange_rate: '1.0\u0000',
    },
    { initialAmount: '10' },
  ],
  ['a list', [], undefined],
  ['a text', 'paid', undefined],
  ['null amounts', { initial_amount: null, final_amount: null }, undefined],
])('a receipt with %s shows no such amount, and delays no payout', async (_, receipt, shown) => {
  reported = transferIn('payment_processed', { receipt })
  const read = await bridge.readPayout('transfer_123', payout)
  expect([read?.state, read?.receipt]).toEqual(['completed', shown])
})

test('a receipt whose amount has zeros without end is read in little time', async () => {
  reported = transferIn('payment_processed', { receipt: { initial_amount: `0.${'0'.repeat(200_000)}1` } })
  const busyMs = await processorMs(async () =>
    expect((await bridge.readPayout('transfer_123', payout))?.state).toBe('completed'),
  )
  expect(busyMs).toBeLessThan(1_000)
})

test.each([
  ['state', { state: 'payment_processed\u0000' }],
  ['id', { id: 'transfer_123\u0000' }],
])('a NUL in the %s of an answer makes it no answer', async (_, changes) => {
  reported = { json: { ...published.transfer, ...changes } }
  for (const known of ['transfer_123', 'transfer_123\u0000'])
    await expect(bridge.readPayout(known, payout)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test('a transfer other than the one that was read is no answer, whatever its state', async () => {
  reported = transferIn('payment_processed')
  await expect(bridge.readPayout('transfer_124', payout)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test.each([
  ['silence', 'silence'],
  ['half an answer', 'cut'],
  ['no JSON', { text: '<html>' }],
  ['another shape', { json: { ok: true } }],
  ['a server error', { status: 500, json: {} }],
  ['overload', { status: 429, json: {} }],
  ['a refused key', { status: 401, json: {} }],
] as const)('%s is not an answer: the payout stays unknown', async (_, response) => {
  reported = response
  await expect(bridge.createPayout(payout)).rejects.toMatchObject({ code: 'partner-unavailable' })
  await expect(bridge.readPayout('transfer_123', payout)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test('a transfer that the partner does not have is undefined', async () => {
  reported = { status: 404, json: { code: 'not_found', message: 'no' } }
  expect(await bridge.readPayout('transfer_123', payout)).toBeUndefined()
})

test('a refusal is returned with the partner’s code and field, without its message', async () => {
  reported = {
    status: 400,
    json: { code: 'invalid_parameters', message: 'bad 63748472', source: { key: { 'account.sort_code': '63748472' } } },
  }
  const agreed = await bridge.createAccount(account)
  expect(agreed).toEqual({
    ok: false,
    refusal: {
      code: 'invalid_parameters',
      message: 'The partner refused the request: invalid_parameters (account.sort_code).',
    },
  })
  reported = { status: 422, text: 'nothing of use' }
  expect(await bridge.createAccount(account)).toMatchObject({ ok: false, refusal: { code: 'http-422' } })
})

test.each([
  [
    account.destination,
    { currency: 'gbp', account_type: 'gb', account: { sort_code: '202959', account_number: '63748472' } },
  ],
  [
    { currency: 'EUR', iban: 'DE89370400440532013000', swiftBic: 'COBADEFF' } as const,
    {
      currency: 'eur',
      account_type: 'iban',
      iban: { account_number: 'DE89370400440532013000', bic: 'COBADEFF', country: 'DEU' },
    },
  ],
  [
    { currency: 'USD', routingNumber: '021000021', accountNumber: '987654321' } as const,
    {
      currency: 'usd',
      account_type: 'us',
      account: { routing_number: '021000021', account_number: '987654321', checking_or_savings: 'checking' },
      address: {
        street_line_1: '923 Folsom Street',
        city: 'San Francisco',
        state: 'CA',
        postal_code: '94107',
        country: 'USA',
      },
    },
  ],
])('an account in %o is sent in Bridge’s format', async (destination, expected) => {
  reported = { status: 201, json: { id: 'ext_1', active: true } }
  expect(await bridge.createAccount({ ...account, destination, address })).toEqual({
    ok: true,
    value: { accountId: 'ext_1', isActive: true },
  })
  const { method, path, body, headers } = double.requested[0] ?? {}
  expect([method, path, headers?.['idempotency-key']]).toEqual([
    'POST',
    '/customers/cust_alice/external_accounts',
    account.key,
  ])
  expect(body).toEqual({
    account_owner_type: 'business',
    account_owner_name: 'Acme Inc',
    business_name: 'Acme Inc',
    account_name: 'Acme',
    ...expected,
  })
})

test.each([
  [{ network: 'tempo' as const }, 'chain-not-supported'],
  [{ token: { ...payout.token, symbol: 'USDT' } }, 'token-not-supported'],
  [{ reference: 'much too long for ACH' }, 'reference-not-possible'],
  [{ currency: 'EUR' as const, reference: 'short' }, 'reference-not-possible'],
])('a payout with %o is refused without a request', async (changes, code) => {
  expect(await bridge.createPayout({ ...payout, ...changes })).toMatchObject({ ok: false, refusal: { code } })
  expect(double.requested).toEqual([])
})

test.each([
  [{ json: { deleted: true } }, 'deleted'],
  [{ status: 404, json: { code: 'not_found' } }, 'deleted'],
  [{ status: 500, json: {} }, 'kept'],
  [{ status: 422, json: { code: 'in_use' } }, 'kept'],
])('an account for which Bridge returns %o is %s', async (says, end) => {
  reported = says
  const forgetting = bridge.deleteAccount({ customerId: 'cust_bob', accountId: 'ext_1' }).then(
    () => 'deleted',
    () => 'kept',
  )
  expect(await forgetting).toBe(end)
  const { method, path } = double.requested[0] ?? {}
  expect([method, path]).toEqual(['DELETE', '/customers/cust_bob/external_accounts/ext_1'])
})

test('dollars need the owner’s address, and an IBAN a country that SEPA reaches', async () => {
  const usd = { currency: 'USD', routingNumber: '021000021', accountNumber: '987654321' } as const
  const tr = { currency: 'EUR', iban: 'TR330006100519786457841326', swiftBic: 'AKBKTRIS' } as const
  expect(await bridge.createAccount({ ...account, destination: usd })).toMatchObject({
    refusal: { code: 'address-required' },
  })
  expect(await bridge.createAccount({ ...account, destination: tr })).toMatchObject({
    refusal: { code: 'country-not-supported' },
  })
})

test('neither the key nor an account’s number reaches a log line or an error', async () => {
  reported = { status: 500, json: { message: '63748472' } }
  const error = await bridge.createAccount(account).catch((thrown: unknown) => thrown)
  expect(inspect(error, { depth: 10 })).not.toMatch(/63748472|202959|sk-bridge/)
  expect(lines.join('')).not.toMatch(/63748472|202959|sk-bridge/)
})
