import type { IncomingMessage, ServerResponse } from 'node:http'
import { Challenge } from 'mppx'
import { evm, Mppx, tempo } from 'mppx/server'

/** What an official mppx server is paid, where, and the secret that binds its challenges. */
export interface MppxBill {
  readonly realm: string
  readonly secret: string
  readonly payTo: `0x${string}`
  readonly token: `0x${string}`
  readonly domain: { readonly name: string; readonly version: string }
  readonly chainId: number
  /** Decimal dollars. */
  readonly price: string
}

/** Answers whether the request was paid for; otherwise the 402 is written already. */
export type MppxListener = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>

const pathUsd = '0x20c0000000000000000000000000000000000000'

/**
 * The official mppx server, as its documentation puts it together, for benchmarks and tests to stand beside: `one` offers
 * evm/charge with x402 beside it, `dual` tempo/charge too. Its settlement costs nothing and records nothing.
 */
export function mppxServer(bill: MppxBill): { readonly one: MppxListener; readonly dual: MppxListener } {
  const { compose } = Mppx.create({
    secretKey: bill.secret,
    realm: bill.realm,
    methods: [tempo.charge({ currency: pathUsd, recipient: bill.payTo, testnet: true }), evmCharge(bill)],
  })
  const asked = { amount: bill.price, description: 'Daily report' }
  const listener = (handler: Parameters<typeof Mppx.toNodeListener>[0]): MppxListener => {
    const listen = Mppx.toNodeListener(handler)
    return async (request, response) => (await listen(request, response)).status !== 402
  }
  return {
    one: listener(compose(['evm/charge', asked])),
    dual: listener(compose(['tempo/charge', asked], ['evm/charge', asked])),
  }
}

/** Challenges of that server, as its header writes them, each with another id. */
export async function mppxChallenges(bill: MppxBill, count: number): Promise<string[]> {
  const { challenge } = Mppx.create({ secretKey: bill.secret, realm: bill.realm, methods: [evmCharge(bill)] })
  const made: string[] = []
  for (let index = 0; index < count; index += 1) {
    const asked = { amount: bill.price, description: 'Daily report', expires: expiryOf(index) }
    made.push(Challenge.serialize(await challenge.evm.charge(asked)))
  }
  return made
}

/** The description is outside the id: only the expiry makes two challenges of one route differ. */
function expiryOf(index: number): string {
  return new Date(Date.now() + 3_600_000 + index).toISOString()
}

function evmCharge({ token, payTo, chainId, domain }: MppxBill) {
  const x402 = { facilitator: { verify: neverAsked, settle: neverAsked } }
  return evm.charge({
    currency: token,
    recipient: payTo,
    chainId,
    decimals: 6,
    authorization: domain,
    settle: async () => ({ reference: `0x${'00'.repeat(32)}` }),
    x402,
  })
}

async function neverAsked(): Promise<never> {
  throw new Error('no payment comes by x402 here')
}
