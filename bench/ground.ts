import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { networkByName, tokenBySymbol } from '@purser/protocol'
import { type Bill, createPayers, type Payer } from './payments.ts'

/** The environment that both sides share: one chain, the funded payers and the payment terms. */
export interface Ground {
  readonly chain: DevChain
  readonly payers: readonly Payer[]
  readonly bill: Bill
}

/** Enough that no full run has more than 100 open payments of one payer, which is the service's limit. */
const payerCount = 1_024
const fundsOfEach = 1_000_000_000_000n // a million dollars: no run can use it up
const rawPrice = 10_000n

/** The price of every payment in US dollars; `rawAmount` of the bill is the same price in the token's smallest unit. */
export const priceUsd = '0.01'

/** Starts a chain and funds the payers. Blocks are mined per transaction, or every so many seconds. */
export async function startGround(blockTimeSeconds?: number): Promise<Ground> {
  const network = networkByName('base-sepolia')
  const token = network && tokenBySymbol(network, 'USDC')
  if (network === undefined || token === undefined) throw new Error('the registry has no USDC on base-sepolia')
  const chain = await startChain({
    network: 'base-sepolia',
    ...(blockTimeSeconds === undefined ? {} : { blockTimeSeconds }),
  })
  try {
    const payers = createPayers(payerCount)
    const receiver = createPayers(1)[0]
    if (receiver === undefined) throw new Error('no receiver')
    // The receiver has a balance before the first payment, so that no side pays the extra gas for a first balance.
    await Promise.all([receiver, ...payers].map(({ address }) => fundToken(chain, 'USDC', address, fundsOfEach)))
    return { chain, payers, bill: { network, token, payTo: receiver.address, rawAmount: rawPrice } }
  } catch (error) {
    await chain.stop()
    throw error
  }
}
