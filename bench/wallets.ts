import { type Closing, createClosing } from './closing.ts'
import { benchDerive, type DerivePlan, fullDerive, quickDerive } from './wallets-derive.ts'
import { benchWatch, fullWatch, quickWatch, type WatchPlan } from './wallets-watch.ts'

export interface WalletsPlan {
  readonly derive: DerivePlan
  readonly watch: WatchPlan
}

export const fullWallets: WalletsPlan = { derive: fullDerive, watch: fullWatch }
export const quickWallets: WalletsPlan = { derive: quickDerive, watch: quickWatch }

export const walletParts = ['derive', 'watch'] as const
export type WalletPart = (typeof walletParts)[number]

/** Measures wallets, part by part, each with a database and processes of its own, which end before the next begins. */
export async function benchWallets(plan: WalletsPlan, closing: Closing, parts: readonly WalletPart[]): Promise<number> {
  const benches = {
    derive: (own: Closing) => benchDerive(plan.derive, own),
    watch: (own: Closing) => benchWatch(plan.watch, own),
  }
  let wrong = 0
  for (const part of parts) {
    const own = createClosing()
    const end = closing.add(() => own.all())
    try {
      wrong += await benches[part](own)
    } finally {
      await end()
    }
  }
  return wrong
}
