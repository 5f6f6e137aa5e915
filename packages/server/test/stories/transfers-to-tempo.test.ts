import { type DevChain, fundToken, installRelayDepository, startChain, tokenBalance } from '@purser/devnet'
import { type Address, networkByName, tokenBySymbol } from '@purser/protocol'
import { encodeFunctionData, erc20Abi, keccak256, parseAbi, toHex } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { relayDepository } from '../../src/partners/routing/relay.ts'
import { aLiveStage, type LiveStage } from '../live-stage.ts'
import { relayOrder } from '../partner-calls.ts'
import { aPartner, type PartnerDouble, type PartnerRequest, type PartnerResponse } from '../partner-double.ts'
import { bridgeOf, stranger } from '../partner-stage.ts'
import { endOn } from '../routes.ts'
import { codeOf } from '../world.ts'

const depositAbi = parseAbi(['function depositErc20(address depositor, address token, uint256 amount, bytes32 id)'])
const hash = `0x${'ef'.repeat(32)}` as const
const toTempo = { toChain: 'tempo', toToken: 'pathUSD' }

let base: DevChain
let relay: PartnerDouble
let stage: LiveStage
/** The statuses of each recipient's deposit in order; the last one repeats. */
let words: Map<string, PartnerResponse[]>
/** How a quote differs from an honest one. */
let lie: Lie

interface Lie {
  readonly payTo?: Address
  readonly approved?: bigint
  readonly depositor?: Address
  readonly value?: string
  readonly chainId?: number
  readonly recipient?: Address
  readonly minimum?: string
  readonly kind?: string
  /** How the order behind the deposit differs. */
  readonly ordered?: Parameters<typeof relayOrder>[1]
}

beforeAll(async () => {
  base = await startChain({ network: 'base' })
  await installRelayDepository(base, relayDepository)
  relay = await aPartner(answered)
  stage = await aLiveStage([base], { relay: { baseUrl: relay.url, apiKey: 'relay-secret' } })
})
afterAll(async () => {
  await stage?.stop()
  await relay?.stop()
  await base?.stop()
})
beforeEach(() => {
  lie = {}
  words = new Map()
})

const Body = z.object({ user: z.templateLiteral(['0x', z.string()]), recipient: z.string(), amount: z.string() })
const idOf = (recipient: string) => keccak256(toHex(recipient.toLowerCase()))

function answered({ path, body, query }: PartnerRequest): PartnerResponse {
  if (path === '/quote/v2') return quoteOf(Body.parse(body))
  const replies = [...words].find(([recipient]) => idOf(recipient) === query.requestId)?.[1] ?? []
  return (replies.length > 1 ? replies.shift() : replies[0]) ?? { json: { status: 'waiting' } }
}

/** In the form of `POST /quote/v2`. */
function quoteOf({ user, recipient, amount }: z.output<typeof Body>): PartnerResponse {
  const usdc = addressOf('base', 'USDC')
  const payTo = lie.payTo ?? relayDepository
  const requestId = idOf(recipient)
  const step = (id: string, to: Address, data: string) => ({
    ...{ id, action: 'Confirm', description: 'Sign', kind: lie.kind ?? 'transaction', requestId },
    items: [
      {
        status: 'incomplete',
        data: {
          from: user,
          to,
          data,
          value: id === 'deposit' ? (lie.value ?? '0') : '0',
          chainId: lie.chainId ?? 8_453,
          gas: '90000',
        },
        check: { endpoint: `/intents/status/v3?requestId=${requestId}`, method: 'GET' },
      },
    ],
  })
  const approve = [payTo, lie.approved ?? BigInt(amount)] as const
  const ends = { from: endOn('base', 'USDC'), to: endOn('tempo', 'pathUSD') }
  const people = { fromAddress: user, toAddress: recipient as Address }
  const ordered = { least: 49_900_000n, ...lie.ordered }
  const order = relayOrder({ ...ends, ...people, rawAmount: BigInt(amount) }, ordered)
  const deposit = [lie.depositor ?? user, usdc, BigInt(amount), order.id] as const
  const currency = (chainId: number, address: Address) => ({ chainId, address, symbol: 'USD', decimals: 6 })
  return {
    json: {
      steps: [
        step('approve', usdc, encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: approve })),
        step('deposit', payTo, encodeFunctionData({ abi: depositAbi, functionName: 'depositErc20', args: deposit })),
      ],
      protocol: { v2: { orderId: order.id, orderData: order.data } },
      fees: { relayer: { currency: { symbol: 'USDC' }, amount: '20000' } },
      details: {
        recipient: lie.recipient ?? recipient,
        timeEstimate: 4,
        currencyIn: { currency: currency(8_453, usdc), amount },
        currencyOut: {
          currency: currency(4_217, addressOf('tempo', 'pathUSD')),
          amount: '49980000',
          minimumAmount: lie.minimum ?? '49900000',
        },
      },
    },
  }
}

function addressOf(network: string, symbol: string): Address {
  const found = networkByName(network)
  const token = found && tokenBySymbol(found, symbol)
  if (token === undefined) throw new Error('no such token')
  return token.address
}

const statusReply = (status: string, txHashes: readonly string[] = []): PartnerResponse => ({
  json: {
    status,
    inTxHashes: [],
    txHashes,
    updatedAt: 1_713_290_386_145,
    originChainId: 8_453,
    destinationChainId: 4_217,
  },
})
const paid = statusReply('success', [hash])
const arrived = { status: 'confirmed', toAmount: '49.98', destinationTxHash: hash }
const back = { status: 'failed', reason: 'refunded', refundTxHash: expect.stringMatching(/^0x[0-9a-f]{64}$/) }

const ends: readonly [string, PartnerResponse[], object, string][] = [
  [
    'goes through every pending state',
    ['waiting', 'depositing', 'pending', 'submitted', 'delayed'].map((one) => statusReply(one)).concat(paid),
    arrived,
    'transfer.completed',
  ],
  ['is given back', [statusReply('refund', [hash])], back, 'transfer.failed'],
  ['is given back, with the status of their older tools', [statusReply('refunded', [hash])], back, 'transfer.failed'],
  [
    'fails and is given back later',
    [statusReply('failure'), statusReply('failure'), statusReply('refund', [hash])],
    back,
    'transfer.failed',
  ],
  ['fails and arrives all the same', [statusReply('failure'), paid], arrived, 'transfer.completed'],
  ['is in an undocumented state', [statusReply('teleported'), paid], arrived, 'transfer.completed'],
  [
    'gets only unusable answers',
    [{ status: 500, json: {} }, { status: 404, json: {} }, { text: '' }, 'cut', paid],
    arrived,
    'transfer.completed',
  ],
]

/** Copies the responses with another transaction in place of `hash`. */
function naming(sequence: readonly PartnerResponse[], refundTxHash: string): PartnerResponse[] {
  return sequence.map((one) =>
    typeof one === 'string' ? one : JSON.parse(JSON.stringify(one).replaceAll(hash, refundTxHash)),
  )
}

test('a bridge to Tempo by Relay ends as reported, whatever its statuses, once', async () => {
  const sent = []
  for (const [which, sequence, end, event] of ends) {
    const master = await stage.aMaster()
    const body = bridgeOf(master, toTempo)
    words.set(body.toAddress, [statusReply('waiting')])
    const response = await stage.send(body)
    expect([response.status, response.body.status, response.body.toAmount], which).toEqual([201, 'pending', '49.98'])
    expect(await tokenBalance(base, 'USDC', master.address)).toBe(50_000_000n)
    const reported =
      'reason' in end ? naming(sequence, await fundToken(base, 'USDC', master.address, 50_000_000n)) : sequence
    words.set(body.toAddress, [...reported])
    sent.push({ which, response, end, event, to: body.toAddress })
  }
  for (const { which, response, end, event, to } of sent) {
    expect(await stage.ended(response), which).toMatchObject(end)
    expect(
      (await stage.eventsOf(response)).map(({ type }) => type),
      which,
    ).toEqual([event])
    expect(words.get(to), which).toHaveLength(1)
  }
  expect(await tokenBalance(base, 'USDC', relayDepository)).toBe(50_000_000n * BigInt(ends.length))
}, 180_000)

test.each<[string, Lie]>([
  ['another contract paid', { payTo: stranger() }],
  ['more approved', { approved: 2n ** 200n }],
  ['an order that pays somebody else', { ordered: { recipient: stranger() } }],
  ['an order that pays a worthless token', { ordered: { currency: stranger() } }],
  ['an order that pays less', { ordered: { least: 1n } }],
  ['coin on top', { value: '1' }],
  ['a call on another chain', { chainId: 1 }],
  ['somebody else paid there', { recipient: stranger() }],
  ['to deliver less than the slippage', { minimum: '49000000' }],
  ['a signature', { kind: 'signature' }],
])('a Relay that requests %s gets nothing signed', async (_, change) => {
  const master = await stage.aMaster()
  lie = change
  const refused = await stage.send(bridgeOf(master, toTempo))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([503, 'partner-unavailable', 'unsafe-call'])
  expect([await stage.countOf(master.address, 'base'), await tokenBalance(base, 'USDC', master.address)]).toEqual([
    0,
    100_000_000n,
  ])
})

test.each<[string, Lie]>([
  ['the deposit to be somebody else’s', { depositor: stranger() }],
  ['a refund to somebody else', { ordered: { refundTo: stranger() } }],
  ['a call made over there', { ordered: { calls: ['0x12345678'] } }],
])('a Relay that requests %s offers no known route, and nothing is signed', async (_, change) => {
  const master = await stage.aMaster()
  lie = change
  const refused = await stage.send(bridgeOf(master, toTempo))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'no-route', 'no-route'])
  expect(await stage.countOf(master.address, 'base')).toBe(0)
})

test('Relay’s key is in every request and in no log line', () => {
  expect(new Set(relay.requested.map(({ headers }) => headers['x-api-key']))).toEqual(new Set(['relay-secret']))
  expect(stage.lines.join('')).toMatch(/teleported/)
  expect(stage.lines.join('')).not.toContain('relay-secret')
})
