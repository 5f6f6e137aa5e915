import { z } from 'zod'
import { roles } from '../../platform/roles.ts'

export const Role = z.enum(roles)
export type Role = z.output<typeof Role>
