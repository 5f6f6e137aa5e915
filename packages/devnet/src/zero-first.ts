import zeroFirstUsdc from './artifacts/TestZeroFirstUsdc.json' with { type: 'json' }
import type { DevChain } from './chains.ts'
import { rpc } from './rpc.ts'

/** From now on the chain's USDC refuses, as USDT does, to replace an allowance that is not zero. Balances and allowances stay. */
export async function requireZeroFirst({ rpcUrl, tokens }: DevChain): Promise<void> {
  await rpc(rpcUrl, 'anvil_setCode', [tokens.USDC, zeroFirstUsdc.deployedBytecode])
}
