import { parseAmount } from '@purser/protocol'
import type { PolicyDocument } from '@purser/sdk'
import { type ReactNode, useState } from 'react'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { PolicyLines } from './policy-lines.tsx'
import { policyVerdict, type TriedMovement } from './policy-verdict.ts'

interface TesterProps {
  readonly policy: PolicyDocument | null
  readonly tokens: readonly string[]
  /** Returns more to show below the answer of the policy. */
  readonly after?: (movement: TriedMovement) => ReactNode
}

const operations = { transfer: 'Transfer', pay: 'Payment to a paid API', withdraw: 'Withdrawal' } as const

/** Shows, as the person types, whether a policy would allow one movement, and by which rule. */
export function PolicyTester({ policy, tokens, after }: TesterProps) {
  const symbols = [...new Set([...tokens, ...Object.keys(policy?.tokens ?? {})])]
  const [movement, setMovement] = useState<TriedMovement>({
    operation: 'transfer',
    amount: '',
    token: symbols[0] ?? '',
    recipient: '',
  })
  const { operation, amount, token, recipient } = movement
  const set = (change: Partial<TriedMovement>) => setMovement({ ...movement, ...change })
  const isAccount = operation === 'withdraw'
  const faults = faultsOf(movement)
  const isReady = amount !== '' && recipient !== '' && token !== '' && faults.amount === undefined
  return (
    <div className="flex flex-col gap-3">
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="What">
          {(wiring) => (
            <Select
              {...wiring}
              value={operation}
              onChange={({ target }) => set({ operation: target.value as TriedMovement['operation'] })}
            >
              {Object.entries(operations).map(([name, words]) => (
                <option key={name} value={name}>
                  {words}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <div className="grid grid-cols-amount gap-3">
          <Field label="Amount" fault={faults.amount}>
            {(wiring) => (
              <TextInput
                {...wiring}
                inputMode="decimal"
                placeholder="30"
                value={amount}
                onChange={({ target }) => set({ amount: target.value.trim() })}
              />
            )}
          </Field>
          <Field label="Token">
            {(wiring) => (
              <Select {...wiring} value={token} onChange={({ target }) => set({ token: target.value })}>
                {symbols.map((symbol) => (
                  <option key={symbol}>{symbol}</option>
                ))}
              </Select>
            )}
          </Field>
        </div>
      </div>
      <Field label={isAccount ? 'To the bank account' : 'To the address'} fault={faults.recipient}>
        {(wiring) => (
          <TextInput
            {...wiring}
            className="font-mono"
            placeholder={isAccount ? 'bac_…' : '0x…'}
            value={recipient}
            onChange={({ target }) => set({ recipient: target.value.trim() })}
          />
        )}
      </Field>
      <div role="status" className="flex flex-col gap-2">
        {isReady && faults.recipient === undefined && (
          <>
            <PolicyLines lines={[policyVerdict(policy, movement)]} />
            {after?.(movement)}
          </>
        )}
      </div>
    </div>
  )
}

function faultsOf({ operation, amount, recipient }: TriedMovement) {
  const isAmount = typeof parseAmount(amount, 18) === 'bigint' && /[1-9]/.test(amount)
  const isRecipient =
    operation === 'withdraw' ? /^bac_[0-9a-z]{26}$/.test(recipient) : /^0x[0-9a-fA-F]{40}$/.test(recipient)
  return {
    amount: amount === '' || isAmount ? undefined : 'Write an amount above zero.',
    recipient:
      recipient === '' || isRecipient
        ? undefined
        : operation === 'withdraw'
          ? 'The id of a bank account begins with bac_.'
          : 'An address is 0x and 40 hexadecimal digits.',
  }
}
