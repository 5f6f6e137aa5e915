import { queryOptions } from '@tanstack/react-query'
import { hasPassword, listPasskeys } from '../../sign-in/credentials.ts'

export const passkeysKey = ['passkeys'] as const
const passwordKey = ['password'] as const
export const browsersKey = ['sign-in-sessions'] as const

export const passkeysQuery = queryOptions({ queryKey: passkeysKey, queryFn: listPasskeys })
export const passwordQuery = queryOptions({ queryKey: passwordKey, queryFn: hasPassword })
