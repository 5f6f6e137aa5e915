import { networkByName, tokenBySymbol } from '@purser/protocol'
import { Receipt } from 'mppx'
import { evm, Fetch, tempo } from 'mppx/client'
import { createClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tempoModerato } from 'viem/tempo/chains'
import type { DevChain } from './chains.ts'
import type { DevPayer } from './dev-file.ts'

/** A call paid by MPP: the response, and the `Payment-Receipt` as the official client decodes it. */
export interface MppCall {
  readonly status: number
  readonly body: unknown
  /** The transaction that moved the money. */
  readonly reference: string | undefined
}

/**
 * Calls a route with the official mppx client, which pays by `evm/charge`: it signs an authorization and sends no
 * transaction.
 */
export async function payByEvmCharge(url: string, payer: DevPayer, { network, chainId }: DevChain): Promise<MppCall> {
  const known = networkByName(network)
  const usdc = known && tokenBySymbol(known, 'USDC')
  if (usdc === undefined || usdc.eip712 === null) throw new Error(`${network} has no USDC that signatures move`)
  const limits = { networks: [chainId], currencies: [usdc.address], decimals: usdc.decimals, maxAmount: '1' }
  const methods = evm({ account: privateKeyToAccount(payer.privateKey), authorization: usdc.eip712, ...limits })
  return readCall(await Fetch.from({ methods, fetch })(url))
}

/**
 * Calls a route with the official mppx client, which pays by `tempo/charge` in pull mode: it signs a whole transaction,
 * and the seller sends it.
 */
export async function payByTempoCharge(url: string, payer: DevPayer, { rpcUrl }: DevChain): Promise<MppCall> {
  const account = privateKeyToAccount(payer.privateKey)
  const getClient = () => createClient({ chain: tempoModerato, transport: http(rpcUrl) })
  const methods = [tempo.charge({ account, getClient, mode: 'pull' })]
  return readCall(await Fetch.from({ methods, fetch })(url))
}

async function readCall(response: Response): Promise<MppCall> {
  const body: unknown = await response.json()
  const isPaid = response.headers.has('payment-receipt')
  const reference = isPaid ? Receipt.fromResponse(response).reference : undefined
  return { status: response.status, body, reference }
}
