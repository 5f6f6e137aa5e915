import { useQuery } from '@tanstack/react-query'
import { chainsQuery } from '../../api/chains.ts'
import { usePurser } from '../../api/context.ts'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { isAmount } from '../../ui/format.ts'
import { Network } from '../../ui/network.tsx'
import { Amount } from '../../ui/values.tsx'
import { useManagedWallets, useWalletBalances, walletLabel } from './wallets.ts'

export interface TransferDraft {
  readonly walletId: string
  readonly token: string
  readonly amount: string
  readonly toAddress: string
  readonly toChain: string
  readonly toToken: string
  readonly reference: string
}

interface FormProps {
  readonly draft: TransferDraft
  readonly onChange: (draft: TransferDraft) => void
}

/** The missing input for a quote; undefined if the form is complete. */
export function whyNotReady({
  walletId,
  token,
  amount,
  toAddress,
  toChain,
  toToken,
}: TransferDraft): string | undefined {
  if (walletId === '' || token === '') return 'Choose a wallet and a token.'
  if (!isAmount(amount)) return 'Write an amount above zero.'
  if (!isAddress(toAddress)) return 'Write the address of the recipient.'
  return toChain === '' || toToken === '' ? 'Choose what the recipient receives.' : undefined
}

function isAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text)
}

export function TransferForm({ draft, onChange }: FormProps) {
  const wallets = useManagedWallets()
  const choose = (walletId: string) => {
    const wallet = wallets.data?.find(({ id }) => id === walletId)
    const token = wallet?.supportedTokens[0] ?? ''
    onChange({ ...draft, walletId, token, toChain: wallet?.chain ?? '', toToken: token })
  }
  return (
    <>
      <WalletField walletId={draft.walletId} onChoose={choose} />
      <AmountFields
        {...draft}
        onAmount={(amount) => onChange({ ...draft, amount })}
        onToken={(token) => onChange({ ...draft, token, toToken: token })}
      />
      <RecipientFields draft={draft} onChange={onChange} />
      <ReferenceField
        hint="Optional, for your records. It is not on the chain."
        value={draft.reference}
        onChange={(reference) => onChange({ ...draft, reference })}
      />
    </>
  )
}

/** The caller's reference of a movement of money, at most 80 characters. */
export function ReferenceField({
  hint,
  value,
  onChange,
}: {
  hint: string
  value: string
  onChange: (reference: string) => void
}) {
  return (
    <Field label="Reference" hint={hint}>
      {(wiring) => (
        <TextInput {...wiring} maxLength={80} value={value} onChange={({ target }) => onChange(target.value)} />
      )}
    </Field>
  )
}

/** Chooses the managed wallet that pays. */
export function WalletField({ walletId, onChoose }: { walletId: string; onChoose: (walletId: string) => void }) {
  const wallets = useManagedWallets()
  return (
    <Field
      label="From"
      fault={wallets.data?.length === 0 ? 'You have no managed wallet. Create one under Wallets.' : undefined}
    >
      {(wiring) => (
        <Select {...wiring} value={walletId} onChange={({ target }) => onChoose(target.value)}>
          <option value="">Choose a wallet</option>
          {wallets.data?.map((wallet) => (
            <option key={wallet.id} value={wallet.id}>
              {walletLabel(wallet)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  )
}

interface AmountProps {
  readonly walletId: string
  readonly amount: string
  readonly token: string
  readonly onAmount: (amount: string) => void
  readonly onToken: (token: string) => void
}

/** The amount that leaves a managed wallet and its token, with what the wallet can send. */
export function AmountFields({ walletId, amount, token: chosen, onAmount, onToken }: AmountProps) {
  const wallet = useManagedWallets().data?.find(({ id }) => id === walletId)
  const balances = useWalletBalances(wallet?.id)
  const balance = balances.data?.find(({ tokenSymbol }) => tokenSymbol === chosen)
  return (
    <div className="grid grid-cols-amount gap-3">
      <Field
        label="Amount"
        hint={
          balance !== undefined && (
            <>
              <Amount value={balance.parts?.available ?? balance.formattedBalance} token={balance.tokenSymbol} /> can be
              sent now.
            </>
          )
        }
        fault={amount === '' || isAmount(amount) ? undefined : 'Write a decimal amount, such as 12.50.'}
      >
        {(wiring) => (
          <TextInput
            {...wiring}
            inputMode="decimal"
            value={amount}
            onChange={({ target }) => onAmount(target.value.trim())}
          />
        )}
      </Field>
      <Field label="Token">
        {(wiring) => (
          <Select {...wiring} value={chosen} onChange={({ target }) => onToken(target.value)}>
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

function RecipientFields({ draft, onChange }: FormProps) {
  const purser = usePurser()
  const chains = useQuery(chainsQuery(purser))
  const configured = chains.data?.filter(({ configured }) => configured) ?? []
  return (
    <>
      <Field
        label="To address"
        fault={
          draft.toAddress === '' || isAddress(draft.toAddress)
            ? undefined
            : 'An address is 0x and 40 hexadecimal digits.'
        }
      >
        {(wiring) => (
          <TextInput
            {...wiring}
            className="font-mono"
            value={draft.toAddress}
            onChange={({ target }) => onChange({ ...draft, toAddress: target.value.trim() })}
          />
        )}
      </Field>
      <div className="grid grid-cols-amount gap-3">
        <Field
          label="On"
          hint="To another network the money is bridged, to another token it is swapped. The quote states the cost."
        >
          {(wiring) => (
            <Select
              {...wiring}
              value={draft.toChain}
              onChange={({ target }) => onChange({ ...draft, toChain: target.value })}
            >
              {draft.toChain === '' && <option value="">Choose a network</option>}
              {configured.map(({ name }) => (
                <option key={name} value={name}>
                  <Network chain={name} />
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="As">
          {(wiring) => (
            <TextInput
              {...wiring}
              value={draft.toToken}
              onChange={({ target }) => onChange({ ...draft, toToken: target.value.trim() })}
            />
          )}
        </Field>
      </div>
    </>
  )
}
