import type { BankAccount, MasterWallet } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { Amount } from '../../ui/values.tsx'
import { accountLabel, useBankAccounts } from '../bank-accounts/queries.ts'
import { isAmount } from '../transfers/transfer-form.tsx'
import { useManagedWallets, useWalletBalances, walletLabel } from '../transfers/wallets.ts'

export interface WithdrawalDraft {
  readonly walletId: string
  readonly token: string
  readonly amount: string
  readonly bankAccountId: string
  readonly reference: string
}

export const emptyWithdrawal: WithdrawalDraft = {
  walletId: '',
  token: '',
  amount: '',
  bankAccountId: '',
  reference: '',
}

interface FormProps {
  readonly draft: WithdrawalDraft
  readonly onChange: (draft: WithdrawalDraft) => void
}

export function WithdrawalForm({ draft, onChange }: FormProps) {
  const wallets = useManagedWallets()
  const accounts = useBankAccounts()
  const wallet = wallets.data?.find(({ id }) => id === draft.walletId)
  const choose = (walletId: string) => {
    const token = wallets.data?.find(({ id }) => id === walletId)?.supportedTokens[0] ?? ''
    onChange({ ...draft, walletId, token })
  }
  return (
    <>
      <Field
        label="From"
        fault={wallets.data?.length === 0 ? 'You have no managed wallet. Create one under Wallets.' : undefined}
      >
        {(wiring) => (
          <Select {...wiring} value={draft.walletId} onChange={({ target }) => choose(target.value)}>
            <option value="">Choose a wallet</option>
            {wallets.data?.map((one) => (
              <option key={one.id} value={one.id}>
                {walletLabel(one)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <AmountField draft={draft} onChange={onChange} wallet={wallet} />
      <Field
        label="To"
        hint={
          accounts.data?.length === 0 && (
            <>
              You have no bank account.{' '}
              <Link to="/bank-accounts" className="text-accent-text underline">
                Add one
              </Link>{' '}
              first.
            </>
          )
        }
      >
        {(wiring) => (
          <Select
            {...wiring}
            value={draft.bankAccountId}
            onChange={({ target }) => onChange({ ...draft, bankAccountId: target.value })}
          >
            <option value="">Choose a bank account</option>
            {accounts.data?.map((account) => (
              <option key={account.id} value={account.id}>
                {accountLabel(account)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label="Reference" hint="Optional.">
        {(wiring) => (
          <TextInput
            {...wiring}
            maxLength={80}
            value={draft.reference}
            onChange={({ target }) => onChange({ ...draft, reference: target.value })}
          />
        )}
      </Field>
    </>
  )
}

function AmountField({ draft, onChange, wallet }: FormProps & { wallet: MasterWallet | undefined }) {
  const balances = useWalletBalances(wallet?.id)
  const balance = balances.data?.find(({ tokenSymbol }) => tokenSymbol === draft.token)
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_120px] gap-3">
      <Field
        label="Amount"
        hint={
          balance !== undefined && (
            <>
              The wallet has <Amount value={balance.formattedBalance} token={balance.tokenSymbol} />.
            </>
          )
        }
        fault={draft.amount === '' || isAmount(draft.amount) ? undefined : 'Write a decimal amount, such as 12.50.'}
      >
        {(wiring) => (
          <TextInput
            {...wiring}
            inputMode="decimal"
            value={draft.amount}
            onChange={({ target }) => onChange({ ...draft, amount: target.value.trim() })}
          />
        )}
      </Field>
      <Field label="Token">
        {(wiring) => (
          <Select
            {...wiring}
            value={draft.token}
            onChange={({ target }) => onChange({ ...draft, token: target.value })}
          >
            {wallet === undefined && <option value="">None</option>}
            {wallet?.supportedTokens.map((token) => (
              <option key={token}>{token}</option>
            ))}
          </Select>
        )}
      </Field>
    </div>
  )
}

/** What a withdrawal will do, in words, before anything moves. */
export function WithdrawalReview({
  draft,
  wallet,
  account,
}: {
  draft: WithdrawalDraft
  wallet: MasterWallet
  account: BankAccount
}) {
  return (
    <>
      <p>
        <strong className="font-medium">
          <Amount value={draft.amount} token={draft.token} />
        </strong>{' '}
        leaves {walletLabel(wallet)} and is converted to {account.currency} by the payout partner. It cannot be
        reversed.
      </p>
      <Facts>
        <Fact name="To">{account.accountName}</Fact>
        <Fact name="Account">
          <span className="num">{account.maskedAccount}</span> {account.currency}
        </Fact>
        <Fact name="Rate and fee">The payout partner sets both at conversion.</Fact>
        {draft.reference !== '' && <Fact name="Reference">{draft.reference}</Fact>}
      </Facts>
    </>
  )
}
