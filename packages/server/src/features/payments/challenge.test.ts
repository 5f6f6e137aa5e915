import { createHash } from 'node:crypto'
import {
  canonicalJson,
  challengeBinding,
  decodeMppJson,
  parseChallenges,
  parseEvmChargeRequest,
} from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { offerOf, offersOf, requestOf } from '../../../test/mpp-agent.ts'
import { type Answer, aWorld, codeOf, type Org, unreachableMain, type World } from '../../../test/world.ts'
import { ChallengeRequest } from './schema.ts'

let world: World
let org: Org
let wallet: { id: string; address: `0x${string}` }
const now = new Date('2026-11-22T00:00:00.000Z')

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, boot: { clock: { now: () => now } } })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(() => world?.stop())

const resource = 'https://api.example.com:8443/weather?city=Lima#top'

function challenge(changes: Readonly<Record<string, unknown>> = {}, key = org.testKey): Promise<Answer> {
  const body = { walletId: wallet.id, resource, price: '0.01', ...changes }
  return world.call(key, 'POST', '/payments/challenge', body)
}

async function aWalletOn(chain: string, supportedTokens: readonly string[], key = org.testKey): Promise<string> {
  const body = { address: wallet.address, chain, supportedTokens }
  const made = await world.call(key, 'POST', '/wallet-infra/byo-wallets', body)
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  return String(made.body.id)
}

test('an EIP-3009 wallet offers an evm/charge with the same price, token and expiry as x402', async () => {
  const response = await challenge({ description: 'Weather' })
  const offer = offerOf(response)
  expect(offer).toEqual({
    id: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    realm: 'api.example.com',
    method: 'evm',
    intent: 'charge',
    request: expect.any(String),
    expires: '2026-11-22T00:05:00.000Z',
    digest: undefined,
    description: 'Weather',
    opaque: expect.any(String),
    header: undefined,
  })
  expect(response.body.expiresAt).toBe(offer.expires)
  const required = JSON.parse(Buffer.from(String(response.body.x402), 'base64').toString())
  expect(requestOf(offer)).toEqual({
    amount: required.accepts[0].amount,
    currency: required.accepts[0].asset,
    recipient: wallet.address,
    methodDetails: { chainId: 84532, credentialTypes: ['authorization'], decimals: 6 },
  })
  expect(parseEvmChargeRequest(requestOf(offer))?.amount).toBe('10000')
})

test('request and opaque are canonical, so that clients echo the very text that was signed', async () => {
  const offer = offerOf(await challenge())
  for (const text of [offer.request, offer.opaque ?? '']) {
    const canonical = canonicalJson(decodeMppJson(text))
    expect(Buffer.from(text, 'base64url').toString()).toBe(canonical)
    expect(text).toBe(Buffer.from(canonical).toString('base64url'))
  }
  const digest = createHash('sha256').update('https://api.example.com:8443/weather?city=Lima').digest()
  expect(decodeMppJson(offer.opaque ?? '')).toEqual({
    n: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
    r: digest.subarray(0, 16).toString('base64url'),
  })
})

test('a hundred challenges of one millisecond have a hundred different ids', async () => {
  const { list } = await challenge({ count: 100 })
  const offers = list.map((one) => offerOf(one))
  expect(new Set(offers.map(({ id }) => id)).size).toBe(100)
  expect(new Set(offers.map(({ opaque }) => opaque)).size).toBe(100)
  expect(new Set(offers.map(({ request, expires }) => `${request} ${expires}`)).size).toBe(1)
  expect(offerOf(await challenge()).id).not.toBe(offerOf(await challenge()).id)
})

test('the id is the tenant’s own HMAC of what was offered, so a key of the service alone makes it', async () => {
  const offer = offerOf(await challenge())
  const { deps } = world.server
  const own = await deps.mppSecrets.macs({ organisationId: org.id, environment: 'test' })
  const live = await deps.mppSecrets.macs({ organisationId: org.id, environment: 'live' })
  expect(offer.id).toBe(own.current(challengeBinding(offer)))
  expect(offer.id).not.toBe(live.current(challengeBinding(offer)))
})

test('a wallet on Tempo is offered tempo/charge for each token, at most four, and nothing by x402', async () => {
  const tokens = ['ThetaUSD', 'pathUSD', 'AlphaUSD', 'BetaUSD']
  const walletId = await aWalletOn('tempo', tokens)
  const response = await challenge({ walletId })
  expect([response.status, response.body.x402, response.body.x402V1]).toEqual([200, null, null])
  const offers = offersOf(response)
  expect(offers.map(({ method, intent }) => `${method}/${intent}`)).toEqual(Array(4).fill('tempo/charge'))
  expect(offers.map((offer) => requestOf(offer).currency)).toEqual([
    '0x20C0000000000000000000000000000000000003',
    '0x20C0000000000000000000000000000000000000',
    '0x20C0000000000000000000000000000000000001',
    '0x20C0000000000000000000000000000000000002',
  ])
  expect(requestOf(offers[0] ?? offerOf(response))).toEqual({
    amount: '10000',
    currency: '0x20C0000000000000000000000000000000000003',
    recipient: wallet.address,
    methodDetails: { chainId: 42431 },
  })
  expect(String(response.body.mpp).length).toBeLessThan(4_096)
  expect((await challenge({ walletId, acceptMPP: false })).status).toBe(422)
})

test('each protocol has a challenge if it is accepted, and null otherwise', async () => {
  const [both, x402, mpp] = await Promise.all([
    challenge(),
    challenge({ acceptMPP: false }),
    challenge({ acceptX402: false }),
  ])
  const there = ({ body }: Answer) => [body.x402, body.x402V1, body.mpp].map((value) => value !== null)
  expect([both, x402, mpp].map(there)).toEqual([
    [true, true, true],
    [true, true, false],
    [false, false, true],
  ])
  expect(codeOf(await challenge({ acceptX402: false, acceptMPP: false }))).toBe('validation-error')
})

test('a wallet whose tokens no protocol supports is refused', async () => {
  const walletId = await aWalletOn('ethereum', ['USDT'], org.liveKey)
  const refused = await challenge({ walletId }, org.liveKey)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'chain-not-supported'])
})

test('the challenge contains digest and header, and an intent of session becomes charge', async () => {
  const digest = 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:'
  const requested = { digest, credentialHeader: 'Payment-Authorization', intent: 'session' }
  expect(offerOf(await challenge(requested))).toMatchObject({
    digest,
    header: 'Payment-Authorization',
    intent: 'charge',
  })
})

test.each([
  'd',
  'sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=',
  'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:, md5=:AAAA:',
  'sha-256=:short=:',
  'sha-512=:z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==:',
])('the digest %j, which no official client can read, is refused', async (digest) => {
  const refused = await challenge({ digest })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual([expect.objectContaining({ path: '/digest' })])
})

test('whatever a description contains, the header is one line of Latin-1 and every offer stays readable', async () => {
  const description = `line one\r\nX-Evil: yes\u0007 "quoted\\" – ☃ 🎉 ${'long '.repeat(190)}`
  const { testKey } = await world.organisation()
  const walletId = await aWalletOn('tempo-moderato', ['pathUSD', 'AlphaUSD', 'BetaUSD', 'ThetaUSD'], testKey)
  const response = await challenge({ walletId, description }, testKey)
  const header = String(response.body.mpp)
  expect(header).toMatch(/^[\x20-\x7e\xa0-\xff]+$/)
  expect(header.length).toBeLessThan(8_192)
  const offers = parseChallenges(header)
  expect(offers).toHaveLength(4)
  for (const offer of offers) expect(offer.description).toMatch(/^line one X-Evil: yes "quoted\\" – ☃ 🎉 long .*…$/u)
})

test('a host name given instead of a resource is the realm, without port and in lower case', async () => {
  const offer = offerOf(await challenge({ resource: undefined, hostname: 'API.Example.com:8443' }))
  const digest = createHash('sha256').update('host:api.example.com').digest()
  expect(offer.realm).toBe('api.example.com')
  expect(decodeMppJson(offer.opaque ?? '')?.r).toBe(digest.subarray(0, 16).toString('base64url'))
  expect(codeOf(await challenge({ resource: undefined, hostname: '1.2.3.4.5' }))).toBe('validation-error')
})

test('a price of zero requires a proof on Tempo, wherever the wallet is, and has no x402 challenge', async () => {
  for (const price of ['0', '0.00']) {
    const response = await challenge({ price })
    expect([response.status, response.body.x402, response.body.x402V1]).toEqual([200, null, null])
    expect(offersOf(response)).toHaveLength(1)
    expect(offerOf(response).method).toBe('tempo')
    expect(requestOf(offerOf(response))).toEqual({
      amount: '0',
      currency: '0x20C0000000000000000000000000000000000000',
      recipient: wallet.address,
      methodDetails: { chainId: 42431 },
    })
  }
  const x402Only = await challenge({ price: '0', acceptMPP: false })
  expect([x402Only.status, codeOf(x402Only), x402Only.body.reason]).toEqual([422, 'amount-invalid', 'zero'])
})

test('a price with more decimals than the token says how many the token has', async () => {
  const response = await challenge({ price: '0.01234567' })
  expect([codeOf(response), response.body.reason]).toEqual(['amount-invalid', 'too-many-digits'])
  expect(response.body.detail).toBe('The price has more than the 6 decimals of USDC.')
})

test('in live mode a proof is required on Tempo’s main network', async () => {
  const walletId = await aWalletOn('base', ['USDC'], org.liveKey)
  const offer = offerOf(await challenge({ walletId, price: '0' }, org.liveKey))
  expect(requestOf(offer)).toMatchObject({
    currency: '0x20C000000000000000000000b9537d11c60E8b50',
    methodDetails: { chainId: 4217 },
  })
})

test('a long host of other characters than ASCII is refused before it is parsed, which would take a tenth of a second', () => {
  const wide = String.fromCodePoint(...Array.from({ length: 5_400 }, (_, at) => 0x4e00 + at))
  const { user: start } = process.cpuUsage()
  for (const given of [
    { hostname: wide },
    { resource: `https://${wide}/` },
    { resource: `https:${wide.slice(0, 2_000)}` },
  ])
    expect(ChallengeRequest.safeParse({ walletId: wallet.id, price: '1', ...given }).success).toBe(false)
  expect(process.cpuUsage().user - start).toBeLessThan(40_000)
})
