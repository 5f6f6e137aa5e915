import type { PolicyDocument } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select, TextArea, TextInput } from '../../ui/form.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import {
  type CapName,
  draftOf,
  isCap,
  linesOf,
  policyOf,
  type RecipientsDraft,
  type TokenDraft,
} from './policy-draft.ts'
import { PolicyLines } from './policy-lines.tsx'
import { PolicyTester } from './policy-tester.tsx'
import { policyLines } from './policy-words.ts'
import { policyQuery } from './queries.ts'

interface SheetProps {
  readonly walletId: string
  readonly tokens: readonly string[]
  readonly policy: PolicyDocument | null
  readonly onClose: () => void
}

/** Edits a policy, and describes below what it will allow. */
export function PolicySheet({ walletId, tokens, policy, onClose }: SheetProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [draft, setDraft] = useState(() => draftOf(policy, tokens))
  const next = policyOf(draft, policy)
  const isReadable =
    draft.tokens.every(({ caps }) => Object.values(caps).every(isCap)) &&
    [draft.transfer, draft.pay, draft.withdraw].every(
      ({ mode, lines }) => mode !== 'listed' || linesOf(lines).every(isRecipient),
    )
  const save = useMutation({
    mutationFn: () => purser.wallets.master.policy.set(walletId, next),
    onSuccess: (saved) => {
      toastDone('The policy is set')
      queries.setQueryData(policyQuery(purser, walletId).queryKey, saved)
      onClose()
    },
  })
  const changeToken = (changed: TokenDraft) =>
    setDraft({ ...draft, tokens: draft.tokens.map((one) => (one.symbol === changed.symbol ? changed : one)) })
  return (
    <Sheet
      open
      onClose={onClose}
      title="Spend policy of this wallet"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={save.isPending} disabled={!isReadable} onClick={() => save.mutate()}>
            Set this policy
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-5">
        <Recipients
          label="Transfers may go to"
          listed="Only these addresses"
          hint="One address per line."
          draft={draft.transfer}
          onChange={(transfer) => setDraft({ ...draft, transfer })}
        />
        <Recipients
          label="Payments to paid APIs may go to"
          listed="Only these sellers"
          hint="One payment address of a seller per line."
          draft={draft.pay}
          onChange={(pay) => setDraft({ ...draft, pay })}
        />
        <Recipients
          label="Withdrawals may go to"
          listed="Only these bank accounts"
          hint="One bank account id per line, such as bac_…"
          draft={draft.withdraw}
          onChange={(withdraw) => setDraft({ ...draft, withdraw })}
        />
        {draft.tokens.map((token) => (
          <TokenFields key={token.symbol} token={token} onChange={changeToken} />
        ))}
        <section aria-live="polite" className="rounded-card border border-line bg-well p-4">
          <h3 className="mb-2 font-medium">What this allows</h3>
          {isReadable ? (
            <PolicyLines lines={policyLines(next)} />
          ) : (
            <p className="text-ink-2">Correct the marked fields to see it.</p>
          )}
        </section>
        {isReadable && (
          <section className="rounded-card border border-line p-4">
            <h3 className="mb-3 font-medium">Would a movement pass?</h3>
            <PolicyTester policy={next} tokens={tokens} />
            <p className="mt-2 text-sm text-ink-3">Earlier transfers, payments and withdrawals are not counted.</p>
          </section>
        )}
        <p className="text-sm text-ink-3">
          A stricter policy applies immediately. A looser one needs a sign-in within the last ten minutes.
        </p>
        {save.error !== null && <ErrorBlock error={save.error} onRetry={() => save.mutate()} />}
      </div>
    </Sheet>
  )
}

function isRecipient(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text) || /^bac_[0-9a-z]{26}$/.test(text)
}

interface RecipientsProps {
  readonly label: string
  readonly listed: string
  readonly hint: string
  readonly draft: RecipientsDraft
  readonly onChange: (draft: RecipientsDraft) => void
}

function Recipients({ label, listed, hint, draft, onChange }: RecipientsProps) {
  const wrong = linesOf(draft.lines).find((line) => !isRecipient(line))
  return (
    <div className="flex flex-col gap-2">
      <Field label={label}>
        {(wiring) => (
          <Select
            {...wiring}
            value={draft.mode}
            onChange={({ target }) => onChange({ ...draft, mode: target.value as RecipientsDraft['mode'] })}
          >
            <option value="any">Anybody</option>
            <option value="listed">{listed}</option>
            <option value="nobody">Nobody</option>
          </Select>
        )}
      </Field>
      {draft.mode === 'listed' && (
        <Field
          label={listed}
          hint={hint}
          fault={wrong === undefined ? undefined : `${wrong} is neither an address nor the id of a bank account.`}
        >
          {(wiring) => (
            <TextArea
              {...wiring}
              className="font-mono"
              value={draft.lines}
              onChange={({ target }) => onChange({ ...draft, lines: target.value })}
            />
          )}
        </Field>
      )}
    </div>
  )
}

const capLabels: Readonly<Record<CapName, string>> = {
  perTransaction: 'Per transaction',
  perHour: 'Per hour',
  perDay: 'Per day',
  perMonth: 'Per 30 days',
  approvalAbove: 'Approval needed above',
}

function TokenFields({ token, onChange }: { token: TokenDraft; onChange: (token: TokenDraft) => void }) {
  const { symbol, isAllowed, caps } = token
  return (
    <fieldset className="rounded-card border border-line p-4">
      <legend className="px-1 font-medium">{symbol}</legend>
      <label className="flex items-center gap-2">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={isAllowed}
          onChange={({ target }) => onChange({ ...token, isAllowed: target.checked })}
        />
        Can be sent
      </label>
      {isAllowed && (
        <div className="mt-3 grid grid-cols-2 gap-3 sm:grid-cols-4">
          {(Object.keys(capLabels) as readonly CapName[]).map((name) => (
            <div key={name} className={name === 'approvalAbove' ? 'col-span-2' : ''}>
              <Field
                label={capLabels[name]}
                fault={isCap(caps[name]) ? undefined : 'Write a decimal amount, such as 50.'}
              >
                {(wiring) => (
                  <TextInput
                    {...wiring}
                    inputMode="decimal"
                    placeholder={name === 'approvalAbove' ? 'No approval' : 'No limit'}
                    value={caps[name]}
                    onChange={({ target }) => onChange({ ...token, caps: { ...caps, [name]: target.value.trim() } })}
                  />
                )}
              </Field>
            </div>
          ))}
        </div>
      )}
    </fieldset>
  )
}
