package child

// intlClasses are the classes of Intl, in the order of the specification.
func intlClasses() []*intlClass {
	return []*intlClass{
		collatorClass(), dateTimeClass(), namesClass(), listClass(), localeClass(), numberClass(), pluralClass(), relativeClass(),
		segmenterClass(),
	}
}
