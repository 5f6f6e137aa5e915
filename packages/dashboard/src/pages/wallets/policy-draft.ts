import type { PolicyDocument } from '@purser/sdk'

const capNames = ['perTransaction', 'perHour', 'perDay', 'perMonth', 'approvalAbove'] as const
export type CapName = (typeof capNames)[number]

/** The allowed recipients of one operation: none, any, or the lines of a list. */
export interface RecipientsDraft {
  readonly mode: 'nobody' | 'any' | 'listed'
  readonly lines: string
}

export interface TokenDraft {
  readonly symbol: string
  readonly isAllowed: boolean
  readonly caps: Readonly<Record<CapName, string>>
}

export interface PolicyDraft {
  readonly transfer: RecipientsDraft
  /** Payments of a 402: the allowed payment addresses of sellers. */
  readonly pay: RecipientsDraft
  readonly withdraw: RecipientsDraft
  readonly tokens: readonly TokenDraft[]
}

type Rule = PolicyDocument['operations']['transfer'] | undefined

/** A policy as a form shows it. Without one, the form begins with what is allowed now: everything. */
export function draftOf(policy: PolicyDocument | null, walletTokens: readonly string[]): PolicyDraft {
  const symbols = [...new Set([...walletTokens, ...Object.keys(policy?.tokens ?? {})])]
  return {
    transfer: recipientsOf(policy, policy?.operations.transfer),
    pay: recipientsOf(policy, policy?.operations.pay),
    withdraw: recipientsOf(policy, policy?.operations.withdraw),
    tokens: symbols.map((symbol) => {
      const caps = policy?.tokens[symbol]
      const shown = Object.fromEntries(capNames.map((name) => [name, caps?.[name] ?? ''])) as TokenDraft['caps']
      return { symbol, isAllowed: policy === null || caps !== undefined, caps: shown }
    }),
  }
}

function recipientsOf(policy: PolicyDocument | null, rule: Rule): RecipientsDraft {
  if (policy === null || rule?.recipients === 'any') return { mode: 'any', lines: '' }
  if (rule === undefined) return { mode: 'nobody', lines: '' }
  return { mode: 'listed', lines: rule.recipients.join('\n') }
}

/** The document that a form describes. Operations that the form does not show stay as they are. */
export function policyOf({ transfer, pay, withdraw, tokens }: PolicyDraft, old: PolicyDocument | null): PolicyDocument {
  const { transfer: _, pay: __, withdraw: ___, ...kept } = old?.operations ?? {}
  return {
    operations: { ...kept, ...rule('transfer', transfer), ...rule('pay', pay), ...rule('withdraw', withdraw) },
    tokens: Object.fromEntries(
      tokens
        .filter(({ isAllowed }) => isAllowed)
        .map(({ symbol, caps }) => [
          symbol,
          Object.fromEntries(capNames.flatMap((name) => (caps[name] === '' ? [] : [[name, caps[name]]]))),
        ]),
    ),
  }
}

function rule(name: 'transfer' | 'pay' | 'withdraw', { mode, lines }: RecipientsDraft): PolicyDocument['operations'] {
  if (mode === 'nobody') return {}
  return { [name]: { recipients: mode === 'any' ? 'any' : linesOf(lines) } }
}

export function linesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}

export function isCap(text: string): boolean {
  return text === '' || /^\d+(?:\.\d+)?$/.test(text)
}
