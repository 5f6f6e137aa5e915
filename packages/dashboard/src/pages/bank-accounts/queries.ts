import type { BankAccount } from '@purser/sdk'
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'

export const bankAccountsKey = ['bank-accounts'] as const

/** The bank accounts that money can be paid to. */
export function useBankAccounts(
  { isWanted }: { readonly isWanted: boolean } = { isWanted: true },
): UseQueryResult<readonly BankAccount[]> {
  const purser = usePurser()
  return useQuery({
    queryKey: [...bankAccountsKey, 'choices'],
    queryFn: async ({ signal }) => {
      const { items } = await purser.withdrawals.bankAccounts.list({ limit: 100 }, { signal }).page()
      return items.filter(({ isActive }) => isActive)
    },
    enabled: isWanted,
  })
}

export function accountLabel({ accountName, maskedAccount, currency }: BankAccount): string {
  return `${accountName} · ${currency} ${maskedAccount}`
}
