import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sellersOf } from '../official-sellers.ts'
import { aTransferStage, type TransferStage } from '../transfer-stage.ts'
import { aPayer, must, network, offer, pay, reservedOf, usdc } from '../wallet-payment-stage.ts'
import { type Answer, codeOf, request } from '../world.ts'

// A seller whose 402 is meant to break the service that pays it.

let stage: TransferStage
const sellers = sellersOf(() => stage)

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia', config: { webhooksAllowPrivate: true } })
})
afterAll(async () => {
  await sellers.close()
  await stage?.stop()
})

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
    const fetched = await request(stage.world.base, { key: stage.key, method: 'POST', path: '/wallet-infra/pay', body })
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
