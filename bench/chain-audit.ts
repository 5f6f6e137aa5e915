import { tokenBalance } from '@purser/devnet'
import {
  decodeAggregate3,
  decodeBool,
  encodeAggregate3,
  encodeAuthorizationState,
  multicall3Address,
} from '@purser/protocol'
import type { Ground } from './ground.ts'
import { isRecord } from './parse.ts'
import type { SignedPayment } from './payments.ts'

/** The outcome according to the chain, read independently of the services. */
export interface ChainFacts {
  /** Payments whose authorization the token has used. */
  readonly used: number
  /** The number of payments that the receiver got. */
  readonly received: number
  readonly transactions: number
  readonly reverted: number
  /** All transactions of the settler, including failed ones. */
  readonly gas: bigint
}

const callsPerRead = 400

/**
 * Reads the chain now. The returned function reads it again and reports what a settler did to these payments in
 * between.
 */
export async function auditChain(
  ground: Ground,
  settler: string,
): Promise<(payments: readonly SignedPayment[]) => Promise<ChainFacts>> {
  const { chain, bill } = ground
  const balanceOf = () => tokenBalance(chain, bill.token.symbol, bill.payTo)
  const before = { balance: await balanceOf(), block: await blockNumber(chain.rpcUrl) }
  return async (payments) => {
    const sent = await listSent(chain.rpcUrl, settler, { after: before.block, upTo: await blockNumber(chain.rpcUrl) })
    return {
      used: await countUsed(ground, payments),
      received: Number(((await balanceOf()) - before.balance) / bill.rawAmount),
      transactions: sent.length,
      reverted: sent.filter(({ ok }) => !ok).length,
      gas: sent.reduce((gas, { gasUsed }) => gas + gasUsed, 0n),
    }
  }
}

/** Sets block production: one block per transaction, or one every so many seconds. */
export async function setBlockTime(rpcUrl: string, seconds: number | undefined): Promise<void> {
  if (seconds === undefined) await rpc(rpcUrl, 'evm_setAutomine', [true])
  else await rpc(rpcUrl, 'evm_setIntervalMining', [seconds])
}

/** Sets the block gas limit, which limits the payments per batch. */
export async function setBlockGasMax(rpcUrl: string, gas: number): Promise<void> {
  await rpc(rpcUrl, 'evm_setBlockGasLimit', [`0x${gas.toString(16)}`])
  await rpc(rpcUrl, 'anvil_mine', [])
}

/** The gas limit of the latest block. */
export async function blockGasMaxOf(rpcUrl: string): Promise<number> {
  const block = await rpc(rpcUrl, 'eth_getBlockByNumber', ['latest', false])
  return isRecord(block) ? Number(block.gasLimit) : Number.NaN
}

async function countUsed({ chain, bill }: Ground, payments: readonly SignedPayment[]): Promise<number> {
  let used = 0
  for (let from = 0; from < payments.length; from += callsPerRead) {
    const calls = payments.slice(from, from + callsPerRead).map(({ payer, nonce }) => ({
      target: bill.token.address,
      allowFailure: false,
      callData: encodeAuthorizationState(payer, nonce),
    }))
    const reply = await rpc(chain.rpcUrl, 'eth_call', [
      { to: multicall3Address, data: encodeAggregate3(calls) },
      'latest',
    ])
    if (typeof reply !== 'string' || !reply.startsWith('0x')) throw new Error('the chain did not answer a call')
    const states = decodeAggregate3(`0x${reply.slice(2)}`, calls.length)
    used += states.filter(({ success, returnData }) => success && decodeBool(returnData)).length
  }
  return used
}

interface Sent {
  readonly gasUsed: bigint
  readonly ok: boolean
}

async function listSent(
  rpcUrl: string,
  settler: string,
  { after, upTo }: { after: number; upTo: number },
): Promise<Sent[]> {
  const sent: Sent[] = []
  for (let block = after + 1; block <= upTo; block += 1) {
    const receipts = await rpc(rpcUrl, 'eth_getBlockReceipts', [`0x${block.toString(16)}`])
    if (!Array.isArray(receipts)) throw new Error(`block ${block} has no receipts`)
    for (const receipt of receipts) {
      if (!isRecord(receipt) || String(receipt.from).toLowerCase() !== settler.toLowerCase()) continue
      sent.push({ gasUsed: BigInt(String(receipt.gasUsed)), ok: receipt.status === '0x1' })
    }
  }
  return sent
}

async function blockNumber(rpcUrl: string): Promise<number> {
  return Number(await rpc(rpcUrl, 'eth_blockNumber', []))
}

async function rpc(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(30_000),
  })
  const reply: unknown = await response.json()
  if (!isRecord(reply) || isRecord(reply.error)) throw new Error(`${method}: ${JSON.stringify(reply)}`)
  return reply.result
}
