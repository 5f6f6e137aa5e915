import { House } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const homeNav: readonly NavEntry[] = [{ label: 'Home', icon: House, path: '/', group: 'money in' }]
