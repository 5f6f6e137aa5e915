import type { Ctx } from '../../platform/ctx.ts'
import { pause } from '../../platform/work/loop.ts'
import { type Facts, type Place, readFacts } from './facts.ts'
import { listLowestUnmined } from './facts-store.ts'

const settleMs = 50

/**
 * What a block takes in while a wallet is weighed counts twice in that reading, as promised and as gone, until its lane has written the
 * block down. Answers a newer reading where the last one may have been of such a moment; undefined where it was not, and who was short in
 * it is short.
 */
export async function readAgain(ctx: Ctx, place: Place, last: Facts): Promise<Facts | undefined> {
  const { token, native, masterNative } = last.promised
  if (token + native + masterNative === 0n) return undefined
  const isBehind = await isLaneBehind(ctx, place)
  if (isBehind) await pause(settleMs, new AbortController().signal)
  const again = await readFacts(ctx, place)
  return isBehind || !isSame(last, again) ? again : undefined
}

/** Whether the chain counts a nonce of the wallet or its master that no lane has seen in a block. */
async function isLaneBehind(ctx: Ctx, { source, network }: Place): Promise<boolean> {
  const accounts = [...new Set([source.address, source.masterAddress])]
  const open = await listLowestUnmined(
    ctx.db,
    accounts.map((address) => ({ network: network.name, address })),
  )
  const chain = ctx.chains.on(network)
  const behind = await Promise.all(
    open.map(async ({ address, nonce }) => (await chain.transactionCount(address, 'latest')) > nonce),
  )
  return behind.includes(true)
}

function isSame(one: Facts, other: Facts): boolean {
  const said = ({ promised: { token, native, masterNative }, own, master }: Facts) =>
    [token, native, masterNative, own.native, ...own.tokens, master.native].join(' ')
  return said(one) === said(other)
}
