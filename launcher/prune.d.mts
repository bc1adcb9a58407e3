/** Removes other machines' libraries from the packages of `modules`; answers what it removed. */
export const pruneModules: (
  modules: string,
  machine?: { readonly platform: string; readonly arch: string },
) => ReadonlyArray<string>
