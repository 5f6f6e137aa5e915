import { randomBytes } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sellersOf } from '../official-sellers.ts'
import { aTransferStage, masters, patient, type TransferStage } from '../transfer-stage.ts'
import { aPayer, must, network, offer, pay, reservedOf, usdc } from '../wallet-payment-stage.ts'
import { type Answer, codeOf, countByStatus, request } from '../world.ts'

// A seller whose 402 is meant to break the service that pays it.

let stage: TransferStage
const sellers = sellersOf(() => stage)

beforeAll(async () => {
  const config = { webhooksAllowPrivate: true, bodiesBytesMax: 8 * 1_048_576 }
  stage = await aTransferStage({ network: 'base-sepolia', config })
})
afterAll(async () => {
  await sellers.close()
  await stage?.stop()
})

const path = '/wallet-infra/pay'
const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
const { caip2 } = network

/** A 402 whose JSON is this text. */
function challengeOfText(json: string) {
  return { status: 402, headers: { 'payment-required': Buffer.from(json).toString('base64') } }
}

function required(changes: { readonly offer?: string; readonly extra?: string } = {}): string {
  const one = JSON.stringify(offer()).slice(0, -1)
  const { name, version } = must(usdc.eip712)
  const extra = `{"name":"${name}","version":"${version}"${changes.extra ?? ''}}`
  return `{"x402Version":2,"resource":{"url":"https://seller.test/"},"accepts":[${one}${changes.offer ?? ''},"extra":${extra}}]}`
}

const hostile: readonly (readonly [string, string])[] = [
  ['an offer with a NUL in a member', required({ offer: ',"note":"a\\u0000b"' })],
  ['an offer with a lone surrogate', required({ offer: ',"note":"\\ud800"' })],
  ['a challenge id with a NUL', required({ extra: ',"challengeId":"a\\u0000b"' })],
  ['a long challenge id', required({ extra: `,"challengeId":"${randomBytes(4_000).toString('base64url')}"` })],
  ['an offer that nests 10,000 deep', required({ offer: `,"note":${deep}` })],
  ['an extra that nests 10,000 deep', required({ extra: `,"note":${deep}` })],
  ['a resource with a NUL', required().replace('https://seller.test/', 'https://seller.test/\\u0000')],
]

const verdictOf = (answer: Answer) => (answer.status === 201 ? 'paid' : `${answer.status} ${codeOf(answer)}`)
const judged = expect.stringMatching(/^(paid|422 no-payable-offer|409 challenge-already-paid)$/)

test.each(hostile)(
  'a 402 with %s is paid or refused, whether it is given or fetched, and an id is paid once',
  async (name, json) => {
    const { child } = await aPayer(stage)
    const challenge = challengeOfText(json)
    const given = await pay(stage, { from: child, challenge, key: `given ${name}` })
    const url = await sellers.serve(createServer((_, res) => void res.writeHead(402, challenge.headers).end('{}')))
    const body = { fromWalletId: child.id, url, maxAmount: '1' }
    const fetched = await request(stage.world.base, { key: stage.key, method: 'POST', path, body })
    expect([verdictOf(given), verdictOf(fetched)]).toEqual([judged, judged])
    if (name.includes('challenge id')) expect(verdictOf(fetched)).toBe('409 challenge-already-paid')
  },
)

test('a 402 that names its network by any alias is never paid on another one', async () => {
  const { child } = await aPayer(stage)
  const aliases = ['eip155:084532', 'eip155:84532 ', 'EIP155:84532', 'base-sepolia', 'eip155:0x14a34', `${caip2}/x`]
  for (const alias of aliases) {
    const json = required().replace(`"${caip2}"`, `"${alias}"`)
    const answer = await pay(stage, { from: child, challenge: challengeOfText(json) })
    expect([alias, answer.status, codeOf(answer)]).toEqual([alias, 422, 'no-payable-offer'])
  }
  expect(await reservedOf(stage, child)).toBe(0n)
})

test('sellers that keep long responses open hold memory of their own buyer alone, and nothing is fetched for an unknown wallet', async () => {
  const { child } = await aPayer(stage)
  const open: ServerResponse[] = []
  const seller = createServer((_, res) => {
    open.push(res.writeHead(200))
    res.write('a'.repeat(1_000_000))
  })
  const url = await sellers.serve(seller)
  const other = await stage.world.organisation()
  const otherMaster = await stage.world.call(other.testKey, 'POST', masters, {
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  const fetched = (key: string, fromWalletId: unknown) =>
    request(stage.world.base, { key, method: 'POST', path, body: { fromWalletId, url, maxAmount: '1' } })
  expect(codeOf(await fetched(other.testKey, child.id))).toBe('wallet-not-found')
  expect(open).toEqual([])
  const answers = Array.from({ length: 12 }, () => fetched(stage.key, child.id))
  const first = await Promise.race([...answers])
  expect([first.status, codeOf(first), first.headers.get('retry-after')]).toEqual([429, 'rate-limit-exceeded', '1'])
  await expect.poll(() => open.length, patient).toBe(3)
  const others = fetched(other.testKey, otherMaster.body.id)
  await expect.poll(() => open.length, patient).toBe(4)
  for (const response of open) response.end()
  expect((await others).status).toBe(200)
  expect(countByStatus(await Promise.all(answers))).toEqual({ 200: 3, 429: 9 })
  const again = fetched(stage.key, child.id)
  await expect.poll(() => open.length, patient).toBe(5)
  open.at(-1)?.end()
  expect((await again).status).toBe(200)
})
