import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readVaultSearch, readVaultsSearch } from './search.ts'

export const vaultsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/vaults',
    validateSearch: readVaultsSearch,
    component: lazyRouteComponent(() => import('./vaults-page.tsx'), 'VaultsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/vaults/$vaultId',
    validateSearch: readVaultSearch,
    component: lazyRouteComponent(() => import('./vault-page.tsx'), 'VaultPage'),
  }),
] as const
