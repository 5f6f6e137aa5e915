import { formatAmount, parseAddress } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../ports.ts'
import {
  attoOf,
  capOf,
  decide,
  type PolicyDocument,
  type PolicyRule,
  type PolicyWindow,
  type Usage,
  windowStartsAt,
} from './decide.ts'
import type { OutgoingMovement } from './reserve.ts'
import { listPolicies, sumUsages } from './store.ts'

/** The verdict of the current policy about a movement that waits for approval. */
export interface PolicyStanding {
  /** The rule that would refuse it now; null if none would. Gas is left out. */
  readonly deniedBy: PolicyRule | null
  /** What each cap leaves after the movement, in whole tokens, 0 if it would exceed the cap; null where there is no cap. */
  readonly remaining: Readonly<Record<PolicyWindow, string | null>>
}

type Waiting = OutgoingMovement & { readonly subjectId: string }

/** Evaluates movements that are counted already as if each were requested now, in their order. Two queries, however many there are. */
export async function policyStandings(
  ctx: Pick<Ctx, 'db' | 'tenant' | 'clock'>,
  waiting: readonly Waiting[],
): Promise<readonly PolicyStanding[]> {
  if (waiting.length === 0) return []
  const { db, tenant } = ctx
  const masters = [...new Set(waiting.map(({ masterWalletId }) => masterWalletId))]
  const policies = new Map(
    (await listPolicies(db, tenant, masters)).map(({ masterWalletId, document }) => [masterWalletId, document]),
  )
  const starts = windowStartsAt(ctx.clock.now().getTime())
  const since = {
    perHour: instantOf(starts.perHour),
    perDay: instantOf(starts.perDay),
    perMonth: instantOf(starts.perMonth),
  }
  const usages = await sumUsages(db, tenant, waiting, since)
  return waiting.map((movement, index) => {
    const usage = usages[index]
    if (usage === undefined) throw new Error('a usage is missing')
    return standingOf(policies.get(movement.masterWalletId), movement, usage)
  })
}

function standingOf(document: PolicyDocument | undefined, wanted: Waiting, usage: Usage): PolicyStanding {
  const { operation, token, decimals, rawAmount } = wanted
  const recipient = parseAddress(wanted.recipient) ?? wanted.recipient
  const verdict = decide(document, { operation, token: { symbol: token, decimals }, rawAmount, recipient }, usage)
  const caps = document !== undefined && Object.hasOwn(document.tokens, token) ? document.tokens[token] : undefined
  const after = (window: PolicyWindow): string | null => {
    const cap = capOf(caps?.[window])
    if (cap === undefined) return null
    const remaining = cap - usage[window] - attoOf(rawAmount, decimals)
    return formatAmount(remaining > 0n ? remaining : 0n, 18)
  }
  const [perHour, perDay, perMonth] = [after('perHour'), after('perDay'), after('perMonth')]
  return { deniedBy: verdict.allowed ? null : verdict.rule, remaining: { perHour, perDay, perMonth } }
}
