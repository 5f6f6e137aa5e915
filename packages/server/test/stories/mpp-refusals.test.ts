import { type DevChain, startChain } from '@purser/devnet'
import { encodeMppJson } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAdmin } from '../../src/admin/run.ts'
import { footprintOf } from '../footprint.ts'
import { type EchoedCredential, type MppChanges, offerOf, payByEvmCharge, requestOf } from '../mpp-agent.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
  type Org,
  type Payer,
  request,
  unreachableMain,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }
/** How far the server's clock is ahead of the machine's. */
let aheadMs = 0

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  const clock = { now: () => new Date(Date.now() + aheadMs) }
  world = await aWorld({ chains: [chain], rpcUrls: unreachableMain, boot: { clock } })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather?city=Lima'
const digest = 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:'
const otherDigest = 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'

type Fields = Readonly<Record<string, unknown>>

function challenge(changes: Fields = {}, key = org.testKey): Promise<Answer> {
  const body = { walletId: wallet.id, resource, price: '0.01', ...changes }
  return world.call(key, 'POST', '/payments/challenge', body)
}

function verify(credential: string, changes: Fields = {}, key = org.testKey, base = world.base): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource, ...changes }
  return request(base, { key, method: 'POST', path: '/payments/verify', body })
}

async function credentialFor(requested: Fields = {}, changes: MppChanges = {}): Promise<string> {
  return payByEvmCharge(payer.account, offerOf(await challenge(requested)), changes)
}

/**
 * Status, code and reason; and a marker when anything was written. A figure that falls is no trace of the call: after a
 * test has moved the clock, the service voids payments that have expired and releases what they reserved.
 */
async function outcomeOf(ask: () => Promise<Answer>): Promise<string> {
  const before = (await footprintOf(world.database.db)).split(' ')
  const response = await ask()
  const after = (await footprintOf(world.database.db)).split(' ')
  const grew = after.some((figure, index) => BigInt(figure) > BigInt(before[index] ?? 0))
  const left = grew ? ' AND LEFT A TRACE' : ''
  const reason = response.body.reason === undefined ? '' : ` ${String(response.body.reason)}`
  return `${response.status} ${codeOf(response)}${reason}${left}`
}

function refusal(reason: string): string {
  return `402 payment-verification-failed ${reason}`
}

async function outcomes(cases: Readonly<Record<string, () => Promise<Answer>>>): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [name, ask] of Object.entries(cases)) found[name] = await outcomeOf(ask)
  return found
}

function all(cases: Readonly<Record<string, unknown>>, outcome: string): Record<string, string> {
  return Object.fromEntries(Object.keys(cases).map((name) => [name, outcome]))
}

/** The credential with one member of its echoed challenge changed after it was signed. */
function echoing(name: string, value: unknown): MppChanges {
  return {
    after: ({ challenge: echoed }) => {
      if (value === undefined) delete echoed[name]
      else echoed[name] = value
    },
  }
}

test('no member of the challenge can be changed, added or omitted', async () => {
  const later = new Date(Date.now() + 86_400_000).toISOString()
  const cheaper = (value: EchoedCredential): void => {
    const { amount: _, ...request } = requestOf(offerOf({ mpp: `Payment ${asParameters(value.challenge)}` }))
    value.challenge.request = encodeMppJson({ ...request, amount: '1' })
  }
  const changed: Record<string, MppChanges> = {
    'another id': echoing('id', Buffer.alloc(32, 7).toString('base64url')),
    'another realm': echoing('realm', 'evil.example.com'),
    'a later expiry': echoing('expires', later),
    'no expiry': echoing('expires', undefined),
    'an added digest': echoing('digest', digest),
    'an added header': echoing('header', 'Payment-Authorization'),
    'no opaque': echoing('opaque', undefined),
    'another opaque': echoing('opaque', encodeMppJson({ n: 'AAAAAAAAAAAAAAAAAAAAAA', r: 'AAAAAAAAAAAAAAAAAAAAAA' })),
    'a cheaper request': { after: cheaper },
    'the same request in other words': {
      after: ({ challenge: echoed }) => {
        const text = Buffer.from(String(echoed.request), 'base64url').toString()
        echoed.request = Buffer.from(` ${text}`).toString('base64url')
      },
    },
    'the other method': echoing('method', 'tempo'),
  }
  const asks = Object.fromEntries(
    Object.entries(changed).map(([name, changes]) => [name, async () => verify(await credentialFor({}, changes))]),
  )
  expect(await outcomes(asks)).toEqual(all(asks, refusal('invalid-challenge')))
})

test('an id with other spare bits at its end is another id', async () => {
  const changes: MppChanges = {
    after: ({ challenge: echoed }) => {
      const id = String(echoed.id)
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      echoed.id = `${id.slice(0, -1)}${alphabet[alphabet.indexOf(id.at(-1) ?? '') ^ 1]}`
    },
  }
  expect(await outcomeOf(async () => verify(await credentialFor({}, changes)))).toBe(refusal('invalid-challenge'))
})

test('a method or an intent that is not offered is unsupported', async () => {
  const asks = {
    stripe: async () => verify(await credentialFor({}, echoing('method', 'stripe'))),
    session: async () => verify(await credentialFor({}, echoing('intent', 'session'))),
  }
  expect(await outcomes(asks)).toEqual(all(asks, refusal('method-unsupported')))
})

test('a malformed or doubled credential is refused before anything is looked up', async () => {
  const one = await credentialFor()
  const asks = {
    'no base64': () => verify('Payment %%%'),
    'no JSON': () => verify(`Payment ${Buffer.from('nothing').toString('base64url')}`),
    'an array': () => verify(`Payment ${Buffer.from('[]').toString('base64url')}`),
    'no challenge': async () =>
      verify(await credentialFor({}, { after: (whole) => Object.assign(whole, { challenge: 7 }) })),
    'no payload': async () =>
      verify(await credentialFor({}, { after: (whole) => Object.assign(whole, { payload: null }) })),
    'too long': () => verify(`Payment ${'A'.repeat(40_000)}`),
    'a bar in the realm': async () => verify(await credentialFor({}, echoing('realm', 'api.example.com|evm'))),
    'an x402 payment': async () => verify(await payer.credential(await challenge())),
    'another scheme': () => verify('Bearer abc'),
  }
  expect(await outcomes(asks)).toEqual(all(asks, refusal('malformed-credential')))
  expect(await outcomeOf(() => verify(`${one}, ${one}`))).toBe(refusal('bad-request'))
  expect((await verify(one)).status).toBe(200)
})

test('what the payer signed must match the challenge, field by field', async () => {
  const other = privateKeyToAccount(generatePrivateKey())
  const past = String(Math.floor(Date.now() / 1000) - 1)
  const future = String(Math.floor(Date.now() / 1000) + 3_600)
  const changing = (name: string, value: unknown): MppChanges => ({
    after: ({ payload }) => Object.assign(payload, { [name]: value }),
  })
  const failing: Record<string, MppChanges> = {
    'signed to another': { sign: { to: other.address } },
    'signed for more': { sign: { value: '10001' } },
    'signed under another nonce': { sign: { nonce: `0x${'7'.repeat(64)}` } },
    'signed for the past': { sign: { validBefore: past } },
    'signed for later': { sign: { validAfter: future } },
    'another payer': changing('from', other.address),
    'another recipient': changing('to', other.address),
    'a higher value': changing('value', '10001'),
    'a longer validity': changing('validBefore', future),
    'another signature': changing('signature', `0x${'7'.repeat(128)}1b`),
    'another source': { after: (whole) => Object.assign(whole, { source: `did:pkh:eip155:84532:${other.address}` }) },
    'a source on another chain': {
      after: (whole) => Object.assign(whole, { source: `did:pkh:eip155:8453:${payer.account.address}` }),
    },
    'a source of another kind': { after: (whole) => Object.assign(whole, { source: 'did:key:z6Mk' }) },
  }
  const asks = Object.fromEntries(
    Object.entries(failing).map(([name, changes]) => [name, async () => verify(await credentialFor({}, changes))]),
  )
  expect(await outcomes(asks)).toEqual(all(asks, refusal('verification-failed')))
  const invalid = {
    'a transaction': changing('type', 'transaction'),
    'a number': changing('value', 10_000),
    'no nonce': changing('nonce', undefined),
    'a signature that is no hex': changing('signature', 'abc'),
  }
  const unreadable = Object.fromEntries(
    Object.entries(invalid).map(([name, changes]) => [name, async () => verify(await credentialFor({}, changes))]),
  )
  expect(await outcomes(unreadable)).toEqual(all(unreadable, refusal('invalid-payload')))
  const tooLittle = async () => verify(await credentialFor({}, { sign: { value: '9999' } }))
  expect(await outcomeOf(tooLittle)).toBe(refusal('payment-insufficient'))
})

test('a payer without a source is recovered from the signature', async () => {
  const verified = await verify(
    await credentialFor({}, { after: (whole) => Object.assign(whole, { source: undefined }) }),
  )
  expect([verified.status, verified.body.payer]).toEqual([200, payer.account.address])
})

test('a payer without the money gets the protocol’s reason', async () => {
  const poor = await aPayer(chain, 5n)
  const credential = await payByEvmCharge(poor.account, offerOf(await challenge()))
  const response = await verify(credential)
  expect([response.status, response.body.reason]).toEqual([402, 'verification-failed'])
  expect(response.body).toMatchObject({
    message: 'The authorization was refused: invalid_exact_evm_insufficient_balance.',
    payer: poor.account.address,
  })
})

test('a challenge is refused on another route, another host or with another query, but its fragment does not matter', async () => {
  const elsewhere = [
    'https://api.example.com/weather',
    'https://api.example.com/weather?city=Quito',
    'https://api.example.com/report',
    'https://api.example.com:8443/weather?city=Lima',
    'http://api.example.com/weather?city=Lima',
    'https://www.example.com/weather?city=Lima',
    undefined,
  ]
  const credential = await credentialFor()
  const asks = Object.fromEntries(
    elsewhere.map((other) => [String(other), () => verify(credential, { resource: other })]),
  )
  expect(await outcomes(asks)).toEqual(all(asks, refusal('invalid-challenge')))
  expect((await verify(credential, { resource: `${resource}#top` })).status).toBe(200)
})

test('a challenge for a host is valid on that host alone', async () => {
  const requested = { resource: undefined, hostname: 'API.example.com:8443' }
  const credential = await credentialFor(requested)
  const elsewhere = () => verify(credential, { resource: 'https://www.example.com/weather' })
  expect(await outcomeOf(elsewhere)).toBe(refusal('invalid-challenge'))
  expect((await verify(credential, { resource: 'https://api.example.com/any' })).status).toBe(200)
  expect((await verify(await credentialFor(requested), { resource: undefined })).status).toBe(200)
})

test('the price, the wallet and the network must be those of the challenge', async () => {
  const twin = await world.wallet(org)
  const asks = {
    'the price has risen': async () => verify(await credentialFor(), { price: '0.02' }),
    'the price has fallen': async () => verify(await credentialFor(), { price: '0.005' }),
    'another wallet': async () => verify(await credentialFor(), { walletId: twin.id }),
    'another network': async () => verify(await credentialFor(), { network: 'eip155:8453' }),
  }
  expect(await outcomes(asks)).toEqual({
    ...all(asks, refusal('invalid-challenge')),
    'the price has risen': refusal('payment-insufficient'),
  })
})

test('a challenge of another organisation is refused, though the wallet has the same address', async () => {
  const other = await world.organisation()
  const registered = await world.call(other.testKey, 'POST', '/wallet-infra/byo-wallets', {
    address: wallet.address,
    chain: 'base-sepolia',
    supportedTokens: ['USDC'],
  })
  const walletId = String(registered.body.id)
  const theirs = await payByEvmCharge(payer.account, offerOf(await challenge({ walletId }, other.testKey)))
  expect(await outcomeOf(() => verify(theirs))).toBe(refusal('invalid-challenge'))
  expect((await verify(theirs, { walletId }, other.testKey)).status).toBe(200)
})

test('a challenge that was made for a body is valid for that body alone', async () => {
  const bound = await credentialFor({ digest })
  const free = await credentialFor()
  const asks = {
    'another body': () => verify(bound, { digest: otherDigest }),
    'no body': () => verify(bound),
    'a body for a challenge without': () => verify(free, { digest }),
  }
  expect(await outcomes(asks)).toEqual(all(asks, refusal('invalid-challenge')))
  expect((await verify(bound, { digest })).status).toBe(200)
  expect((await verify(free)).status).toBe(200)
})

test('a challenge for another header has that header in its id', async () => {
  const requested = { credentialHeader: 'Payment-Authorization' }
  expect(offerOf(await challenge(requested)).header).toBe('Payment-Authorization')
  const asks = {
    'no header': async () => verify(await credentialFor(requested, echoing('header', undefined))),
    'another header': async () => verify(await credentialFor(requested, echoing('header', 'X-Payment'))),
  }
  expect(await outcomes(asks)).toEqual(all(asks, refusal('invalid-challenge')))
  expect((await verify(await credentialFor(requested))).status).toBe(200)
})

test('a challenge is valid before its expiry and not at it, and its expiry cannot be changed', async () => {
  const offer = offerOf(await challenge())
  const credential = await payByEvmCharge(payer.account, offer)
  const extended = await payByEvmCharge(payer.account, offer, echoing('expires', '2099-01-01T00:00:00.000Z'))
  await later(300_000, async () => {
    expect(await outcomeOf(() => verify(credential))).toBe(refusal('payment-expired'))
    expect(await outcomeOf(() => verify(extended))).toBe(refusal('invalid-challenge'))
  })
  expect((await verify(credential)).status).toBe(200)
})

test('after a rotation old and new challenges are accepted, in every process, until the old ones have expired', async () => {
  const other = await world.another()
  const old = await credentialFor()
  const spare = await credentialFor()
  const env = { DATABASE_URL: world.database.url, KEY_ENCRYPTION_KEY: keyOf(world) }
  const rotated = await runAdmin(['admin', 'rotate-mpp-secret', '--format', 'json'], env)
  expect([rotated.exitCode, JSON.parse(rotated.stdout)]).toEqual([
    0,
    {
      current: expect.stringMatching(/^mpp-challenge-/),
      retired: expect.stringMatching(/^mpp-challenge-/),
      at: expect.any(String),
    },
  ])
  expect(rotated.stdout).not.toContain(keyOf(world))
  await later(40_000, async () => {
    const renewed = await credentialFor()
    expect((await verify(old, {}, org.testKey, other.base)).status).toBe(200)
    expect((await verify(renewed, {}, org.testKey, other.base)).status).toBe(200)
    expect((await verify(await credentialFor())).status).toBe(200)
  })
  await later(400_000, async () => {
    expect(await outcomeOf(() => verify(spare))).toBe(refusal('invalid-challenge'))
  })
  await other.server.stop()
})

test('rotating without the key-encryption key, or with another, changes nothing', async () => {
  const env = { DATABASE_URL: world.database.url }
  const without = await runAdmin(['admin', 'rotate-mpp-secret'], env)
  expect([without.exitCode, without.stderr]).toEqual([1, expect.stringContaining('KEY_ENCRYPTION_KEY')])
  const wrong = { ...env, KEY_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64') }
  const refused = await runAdmin(['admin', 'rotate-mpp-secret'], wrong)
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('is not the one')])
})

test('a price that the token cannot express, or that is below the minimum, is refused before the credential is', async () => {
  const credential = await credentialFor()
  expect(await outcomeOf(() => verify(credential, { price: '0.0000001' }))).toBe('422 amount-invalid too-many-digits')
  expect(await outcomeOf(() => verify(credential, { price: '0.000001' }))).toBe('422 amount-below-minimum')
})

test('in live mode a stub is refused, and in test mode it buys by MPP as by x402', async () => {
  const live = await world.call(org.liveKey, 'POST', '/wallet-infra/byo-wallets', {
    address: wallet.address,
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  const stub = 'stub_payment_accepted'
  const ask = () => verify(stub, { walletId: live.body.id }, org.liveKey)
  expect(await outcomeOf(ask)).toBe(refusal('stub_not_allowed'))
  const paid = await verify(stub)
  expect([paid.status, paid.body]).toMatchObject([
    200,
    {
      protocol: 'mpp',
      scheme: 'stub',
      method: null,
      challengeId: null,
      network: 'eip155:84532',
      settlementPending: false,
    },
  ])
})

/** Runs with the server's clock ahead. */
async function later(byMs: number, work: () => Promise<void>): Promise<void> {
  aheadMs += byMs
  try {
    await work()
  } finally {
    aheadMs -= byMs
  }
}

function keyOf({ config: { keyEncryption } }: World): string {
  if ('base64' in keyEncryption) return keyEncryption.base64
  throw new Error('the test world holds its key in memory')
}

function asParameters(challenge: Fields): string {
  const parts = Object.entries(challenge).map(([name, value]) => `${name}="${String(value)}"`)
  return parts.join(', ')
}
