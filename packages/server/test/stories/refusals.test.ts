import { type DevChain, sendFromDevAccount, startChain } from '@purser/devnet'
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { footprintOf } from '../footprint.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  type CredentialChanges,
  codeOf,
  countByStatus,
  type Org,
  type Payer,
  type V2Payload,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: Address }
let usdc: Address

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  usdc = chain.tokens.USDC ?? '0x'
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'

function challenge(): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price: '0.01' })
}

function verify(
  credential: string,
  changes: Readonly<Record<string, unknown>> = {},
  key = org.testKey,
): Promise<Answer> {
  const body = { protocol: 'x402', credential, price: '0.01', walletId: wallet.id, resource, ...changes }
  return world.call(key, 'POST', '/payments/verify', body)
}

async function pay(changes: CredentialChanges = {}, by = payer): Promise<Answer> {
  return verify(await by.credential(await challenge(), changes))
}

const refusal = (reason: string) => `402 payment-verification-failed ${reason}`

/** Status, code and reason; and a marker when anything was written. */
async function outcomeOf(ask: () => Promise<Answer>): Promise<string> {
  const before = await footprintOf(world.database.db)
  const response = await ask()
  const left = (await footprintOf(world.database.db)) === before ? '' : ' AND LEFT A TRACE'
  return `${response.status} ${codeOf(response)} ${String(response.body.reason ?? '')}${left}`
}

const missing = Symbol('missing')
type Edit = readonly [path: string, value: unknown]

function edit(message: object, [path, value]: Edit): void {
  const names = path.split('.')
  const last = names.pop() ?? ''
  const parent = names.reduce(
    (at, name): object => z.custom<object>((inner) => typeof inner === 'object').parse(Reflect.get(at, name)),
    message,
  )
  if (value === missing) Reflect.deleteProperty(parent, last)
  else Reflect.set(parent, last, value)
}

const versions = {
  2: (edited: Edit): CredentialChanges => ({ after: (payload) => edit(payload, edited) }),
  1: (edited: Edit): CredentialChanges => ({
    after: (payload) => {
      toV1(payload)
      edit(payload, edited)
    },
  }),
}

/** The signed authorization in the form of version 1. */
function toV1(payload: V2Payload): void {
  edit(payload, ['accepted', missing])
  Object.assign(payload, { x402Version: 1, scheme: 'exact', network: 'base-sepolia' })
}

async function outcomes(version: 1 | 2, edits: readonly Edit[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const one of edits) found[nameOf(one)] = await outcomeOf(() => pay(versions[version](one)))
  return found
}

function nameOf([path, value]: Edit): string {
  return `${path} = ${value === missing ? 'missing' : JSON.stringify(value)}`
}

function allRefused(edits: readonly Edit[], reason: string): Record<string, string> {
  return Object.fromEntries(edits.map((one) => [nameOf(one), refusal(reason)]))
}

const stranger: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
const tooLarge = (2n ** 256n).toString()
const authorizationFields = ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'].map(
  (name) => `payload.authorization.${name}`,
)
const forgeries: readonly Edit[] = [
  ['payload.authorization.from', stranger],
  ['payload.authorization.from', '0x036CbD53842c5426634e7929541eC2318f3dCF7e'],
  ['payload.authorization.to', stranger],
  ['payload.authorization.value', '10001'],
  ['payload.authorization.value', '0'],
  ['payload.authorization.validAfter', '1'],
  ['payload.authorization.validBefore', '99999999999'],
  ['payload.authorization.nonce', `0x${'00'.repeat(32)}`],
]
const unreadable: readonly Edit[] = [
  ...['payload', 'payload.authorization', 'payload.signature', ...authorizationFields].flatMap((path) =>
    [missing, null, 7, true, [], {}, ''].map((value): Edit => [path, value]),
  ),
  ...['-1', '+1', '1e4', '0x10', '010000', '1.0', ' 1', '１', tooLarge].flatMap((value) =>
    ['value', 'validAfter', 'validBefore'].map((name): Edit => [`payload.authorization.${name}`, value]),
  ),
  ['payload.authorization.from', '0x1234'],
  ['payload.authorization.to', `${stranger}00`],
  ['payload.authorization.nonce', '0x1234'],
  ['payload.authorization.nonce', `0x${'zz'.repeat(32)}`],
]

test('no field of the signed payload can be changed in version 2 or 1', async () => {
  for (const version of [2, 1] as const) {
    expect(await outcomes(version, forgeries)).toEqual(allRefused(forgeries, 'invalid_exact_evm_signature'))
  }
})

test('a signed part that is missing, null or of another type is an invalid payload in version 2 and 1', async () => {
  for (const version of [2, 1] as const) {
    expect(await outcomes(version, unreadable)).toEqual(allRefused(unreadable, 'invalid_payload'))
  }
})

test('a version other than 1 and 2 is reported as such, and one version in the other’s form is unreadable', async () => {
  const edits = [missing, null, 0, 3, '2', 2.5, [], {}].map((value): Edit => ['x402Version', value])
  for (const version of [2, 1] as const) {
    expect(await outcomes(version, edits)).toEqual(allRefused(edits, 'invalid_x402_version'))
  }
  expect(await outcomes(2, [['x402Version', 1]])).toEqual({ 'x402Version = 1': refusal('invalid_payload') })
  expect(await outcomes(1, [['x402Version', 2]])).toEqual({ 'x402Version = 2': refusal('invalid_payload') })
})

test('the accepted requirements of version 2 must match the offer, field by field', async () => {
  const cases: readonly (readonly [reason: string, path: string, values: readonly unknown[]])[] = [
    ['invalid_exact_evm_scheme', 'accepted.scheme', ['upto', 'Exact', '']],
    ['invalid_exact_evm_network_mismatch', 'accepted.network', ['eip155:8453', 'eip155:11155111', 'eip155:084532']],
    [
      'invalid_exact_evm_payload_authorization_value_mismatch',
      'accepted.amount',
      ['9999', '10001', '0', '010000', '1e4', '-10000', tooLarge],
    ],
    ['invalid_payment_requirements', 'accepted.asset', [stranger, '0x1234', 'USDC']],
    ['invalid_exact_evm_recipient_mismatch', 'accepted.payTo', [stranger, '0x1234']],
    ['invalid_exact_evm_token_name_mismatch', 'accepted.extra.name', ['USD Coin', 'usdc']],
    ['invalid_exact_evm_token_version_mismatch', 'accepted.extra.version', ['1', '2.0']],
    ['invalid_exact_evm_missing_eip712_domain', 'accepted.extra.name', [missing, null, '', 2, {}]],
    ['invalid_exact_evm_missing_eip712_domain', 'accepted.extra.version', [missing, null, '', 2, []]],
    ['invalid_exact_evm_missing_eip712_domain', 'accepted.extra', [missing, null, {}]],
    ['invalid_payload', 'accepted.extra', [7, 'x', []]],
    ['invalid_payload', 'accepted', [missing, null, 7, 'x', []]],
    ['invalid_payload', 'accepted.scheme', [missing, null, 7, []]],
    ['invalid_payload', 'accepted.network', [missing, null, 84532, '', 'base-sepolia', []]],
    ...['amount', 'asset', 'payTo'].map(
      (name) => ['invalid_payload', `accepted.${name}`, [missing, null, 7, '', {}]] as const,
    ),
    ['invalid_payload', 'accepted.maxTimeoutSeconds', [missing, null, '300', 0, -1]],
    ['unsupported_payload_type', 'payload.permit2Authorization', [{}]],
  ]
  for (const [reason, path, values] of cases) {
    const edits = values.map((value): Edit => [path, value])
    expect(await outcomes(2, edits)).toEqual(allRefused(edits, reason))
  }
})

test('version 1 states scheme and network by name, and both must be the wallet’s', async () => {
  const cases: readonly (readonly [reason: string, path: string, values: readonly unknown[]])[] = [
    ['invalid_exact_evm_scheme', 'scheme', ['upto', '']],
    ['invalid_payload', 'scheme', [missing, null, 7]],
    ['invalid_exact_evm_network_mismatch', 'network', ['base', 'eip155:84532', 'Base-Sepolia']],
    ['invalid_payload', 'network', [missing, null, 84532, '']],
  ]
  for (const [reason, path, values] of cases) {
    const edits = values.map((value): Edit => [path, value])
    expect(await outcomes(1, edits)).toEqual(allRefused(edits, reason))
  }
  const tooLittle = { sign: { value: '9999' }, after: toV1 }
  expect(await outcomeOf(() => pay(tooLittle))).toBe(refusal('invalid_exact_evm_authorization_value'))
})

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** Ways to corrupt a valid signature of 65 bytes. */
const spoilt: Readonly<Record<string, (signature: string) => string>> = {
  'a bit of r': (text) => flip(text, 5),
  'a bit of s': (text) => flip(text, 70),
  'the other v': (text) => text.slice(0, -2) + (text.endsWith('1b') ? '1c' : '1b'),
  'an unknown v': (text) => `${text.slice(0, -2)}1d`,
  'high s': (text) => {
    const s = order - BigInt(`0x${text.slice(66, 130)}`)
    return `${text.slice(0, 66)}${s.toString(16).padStart(64, '0')}${text.endsWith('1b') ? '1c' : '1b'}`
  },
  'r of zero': (text) => `0x${'0'.repeat(64)}${text.slice(66)}`,
  's of zero': (text) => `${text.slice(0, 66)}${'0'.repeat(64)}${text.slice(130)}`,
  'r above the order': (text) => `0x${'f'.repeat(64)}${text.slice(66)}`,
  'all zeros': () => `0x${'0'.repeat(130)}`,
  '64 bytes': (text) => text.slice(0, -2),
  '66 bytes': (text) => `${text}00`,
  'one byte': () => '0x1b',
  'no bytes': () => '0x',
  'half a byte': (text) => text.slice(0, -1),
  'no hex': () => 'garbage',
  'no prefix': (text) => text.slice(2),
  'an empty wrapper': () => `0x${'6492'.repeat(16)}`,
}

function flip(text: string, at: number): string {
  return text.slice(0, at) + (Number.parseInt(text[at] ?? '0', 16) ^ 1).toString(16) + text.slice(at + 1)
}

test('a signature with a changed bit, length, s or v is invalid, in version 2 and 1', async () => {
  for (const dress of [() => undefined, toV1]) {
    const found: Record<string, string> = {}
    for (const [name, spoil] of Object.entries(spoilt)) {
      const after = (payload: V2Payload): void => {
        dress(payload)
        payload.payload.signature = spoil(payload.payload.signature)
      }
      found[name] = await outcomeOf(() => pay({ after }))
    }
    expect(found).toEqual(
      Object.fromEntries(Object.keys(spoilt).map((name) => [name, refusal('invalid_exact_evm_signature')])),
    )
  }
})

test('a valid signature for another receiver, amount or time is refused with the protocol’s reason', async () => {
  const now = Math.floor(Date.now() / 1000)
  const cases: readonly (readonly [reason: string, sign: NonNullable<CredentialChanges['sign']>])[] = [
    ['invalid_exact_evm_recipient_mismatch', { to: stranger }],
    ['invalid_exact_evm_payload_authorization_valid_before', { validBefore: String(now - 1) }],
    ['invalid_exact_evm_payload_authorization_valid_before', { validBefore: String(now + 3) }],
    ['invalid_exact_evm_payload_authorization_valid_after', { validAfter: String(now + 100) }],
    ['invalid_exact_evm_payload_authorization_value_mismatch', { value: '9999' }],
    ['invalid_exact_evm_payload_authorization_value_mismatch', { value: '10001' }],
    ['invalid_exact_evm_payload_authorization_value_mismatch', { value: '0' }],
  ]
  for (const [reason, sign] of cases)
    expect(await outcomeOf(() => pay({ sign })), JSON.stringify(sign)).toBe(refusal(reason))
})

test.each([253_402_300_799n, 2n ** 256n - 1n])(
  'a signature that is valid until %s pays, in version 2 and 1',
  async (end) => {
    for (const after of [() => undefined, toV1])
      expect((await pay({ sign: { validBefore: String(end) }, after })).status).toBe(200)
  },
)

test('a header that is not base64 of JSON is an invalid payload', async () => {
  const headers = [
    '!',
    'null',
    Buffer.from('[]').toString('base64'),
    Buffer.from('{"x402Version":2').toString('base64'),
    'A'.repeat(20_000),
  ]
  for (const header of headers) expect(await outcomeOf(() => verify(header))).toBe(refusal('invalid_payload'))
})

const token = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
  'function blacklist(address)',
  'function unBlacklist(address)',
  'function setPaused(bool)',
])

function blacklist(functionName: 'blacklist' | 'unBlacklist', account: Address): Promise<Hex> {
  return sendFromDevAccount(chain, usdc, encodeFunctionData({ abi: token, functionName, args: [account] }))
}

test('a nonce that the merchant has used on chain themselves is reported as used', async () => {
  let data: Hex = '0x'
  const credential = await payer.credential(await challenge(), {
    after: ({ payload: { authorization, signature } }) => {
      const { from, to, value, validAfter, validBefore, nonce } = Signed.parse(authorization)
      const args = [
        from,
        to,
        BigInt(value),
        BigInt(validAfter),
        BigInt(validBefore),
        nonce,
        Hexadecimal.parse(signature),
      ] as const
      data = encodeFunctionData({ abi: token, functionName: 'transferWithAuthorization', args })
    },
  })
  await sendFromDevAccount(chain, usdc, data)
  expect(await outcomeOf(() => verify(credential))).toBe(refusal('invalid_exact_evm_nonce_already_used'))
})

const Hexadecimal = z.templateLiteral(['0x', z.string()])
const Signed = z.object({
  from: Hexadecimal,
  to: Hexadecimal,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: Hexadecimal,
})

test('a payer without enough money, and one without any, gets that reason', async () => {
  for (const rawUsdc of [9_999n, 1n]) {
    const poor = await aPayer(chain, rawUsdc)
    expect(await outcomeOf(() => pay({}, poor))).toBe(refusal('invalid_exact_evm_insufficient_balance'))
  }
  expect(await outcomeOf(async () => pay({}, await aPayer()))).toBe(refusal('invalid_exact_evm_insufficient_balance'))
})

test('a payer or a receiver on the token’s blacklist, or a paused token, makes the simulation fail', async () => {
  const simulationFailed = refusal('invalid_exact_evm_transaction_simulation_failed')
  const barred = await aPayer(chain)
  await blacklist('blacklist', barred.account.address)
  expect(await outcomeOf(() => pay({}, barred))).toBe(simulationFailed)
  await blacklist('blacklist', wallet.address)
  expect(await outcomeOf(() => pay())).toBe(simulationFailed)
  await blacklist('unBlacklist', wallet.address)
  const pause = (paused: boolean) =>
    sendFromDevAccount(chain, usdc, encodeFunctionData({ abi: token, functionName: 'setPaused', args: [paused] }))
  await pause(true)
  expect(await outcomeOf(() => pay())).toBe(simulationFailed)
  await pause(false)
  expect((await pay()).status).toBe(200)
})

test('a payment on another network than the wallet’s, or in a token that it does not accept, is refused', async () => {
  const credential = await payer.credential(await challenge())
  expect(await outcomeOf(() => verify(credential, { network: 'eip155:8453' }))).toBe(
    refusal('invalid_exact_evm_network_mismatch'),
  )
  const elsewhere = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', {
    address: wallet.address,
    chain: 'ethereum',
    supportedTokens: ['USDC'],
  })
  expect(elsewhere.status).toBe(201)
  expect(await outcomeOf(() => verify(credential, { walletId: elsewhere.body.id }))).toBe(
    refusal('invalid_exact_evm_network_mismatch'),
  )
  expect((await verify(credential, { network: 'eip155:84532' })).status).toBe(200)
})

test('one authorization buys once even when two organisations receive at the same address', async () => {
  const other = await world.organisation()
  const made = await world.call(other.testKey, 'POST', '/wallet-infra/byo-wallets', {
    address: wallet.address,
    chain: 'base-sepolia',
    supportedTokens: ['USDC'],
  })
  const credential = await payer.credential(await challenge())
  const answers = await Promise.all([verify(credential), verify(credential, { walletId: made.body.id }, other.testKey)])
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 1 })
})
